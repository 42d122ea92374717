/*
 * Functions of the C library that keep something of their own between calls, which all threads share. In
 * the library nobody sees that; programs that `symbiosis cc` links use these instead, which are
 * instrumented like the program itself. Weak, for programs that bring their own; hidden, so that other
 * libraries keep theirs.
 */

#include <stddef.h>
#include <time.h>

#define REPLACES(name) __asm__(name) __attribute__((weak, visibility("hidden")))

/* Where the last call of strtok left off. Its name is what people read. */
static char *strtok_position;

/* Is the character one of these? */
static int is_among(char character, const char *set)
{
    while (*set != '\0' && *set != character)
        set++;
    return *set != '\0';
}

char *next_token(char *text, const char *delimiters) REPLACES("strtok");

char *next_token(char *text, const char *delimiters)
{
    char *token = text != NULL ? text : strtok_position;
    if (token == NULL)
        return NULL;
    while (*token != '\0' && is_among(*token, delimiters))
        token++;
    if (*token == '\0') {
        strtok_position = token;
        return NULL;
    }
    char *end = token;
    while (*end != '\0' && !is_among(*end, delimiters))
        end++;
    strtok_position = end;
    if (*end != '\0') {
        *end = '\0';
        strtok_position = end + 1;
    }
    return token;
}

/* What localtime and gmtime give, which is one object in the C library, too. */
static struct tm broken_down_time;
/* What asctime and ctime give. */
static struct time_text {
    char text[64];
} time_text;

static struct tm *give_time(const struct tm *time)
{
    if (time == NULL)
        return NULL;
    broken_down_time = *time;
    return &broken_down_time;
}

static char *give_text(const struct tm *time)
{
    struct time_text own = {""};
    if (time == NULL || asctime_r(time, own.text) == NULL)
        return NULL;
    time_text = own;
    return time_text.text;
}

struct tm *utc_of(const time_t *when) REPLACES("gmtime");

struct tm *utc_of(const time_t *when)
{
    struct tm own;
    return give_time(gmtime_r(when, &own));
}

struct tm *local_time_of(const time_t *when) REPLACES("localtime");

struct tm *local_time_of(const time_t *when)
{
    struct tm own;
    /* As localtime does, and localtime_r need not. */
    tzset();
    return give_time(localtime_r(when, &own));
}

char *text_of(const struct tm *time) REPLACES("asctime");

char *text_of(const struct tm *time)
{
    return give_text(time);
}

char *text_of_time(const time_t *when) REPLACES("ctime");

char *text_of_time(const time_t *when)
{
    return give_text(local_time_of(when));
}
