/*
 * Functions of the C library that keep something of their own between calls, which all threads share. In
 * the library nobody sees that; programs that `symbiosis cc` links use these instead, which are
 * instrumented like the program itself. Weak, for programs that bring their own; hidden, so that other
 * libraries keep theirs.
 */

#include <stddef.h>

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
