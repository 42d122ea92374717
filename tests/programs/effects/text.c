// Strings, numbers, formats, sorting, characters: what most programs do with the C library.
#define _GNU_SOURCE
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>
#include <wctype.h>

static int ascending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int print(char *to, size_t room, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(to, room, format, list);
    va_end(list);
    return length;
}

int main(int argc, char **argv)
{
    char text[128], word[32];
    int number, count, other;
    double real;
    long wide;

    setlocale(LC_ALL, "C");
    assert(snprintf(text, sizeof text, "%d %s %.2f", 42, "words", 1.5) == 13);
    assert(strcmp(text, "42 words 1.50") == 0);
    assert(sscanf(text, "%d %31s %lf%n", &number, word, &real, &count) == 3);
    assert(number == 42 && strcmp(word, "words") == 0 && real == 1.5 && count == 13);
    assert(sscanf("7 eight", "%d %d", &number, &other) == 1 && number == 7);
    sprintf(text, "%s-%d%n", argv[0], argc, &count);
    assert((int)strlen(text) == count);
    assert(print(text, sizeof text, "%s/%ld/%g/%s", "a", 5L, 2.5, "b") == 9);
    assert(strcmp(text, "a/5/2.5/b") == 0);

    char *copy = strdup("one,two;three"), *state = NULL;
    int parts = 0;
    for (char *part = strtok_r(copy, ",;", &state); part; part = strtok_r(NULL, ",;", &state))
        parts += part[0] != 0;
    assert(parts == 3);
    free(copy);
    char *rest = strcpy(text, "a:b::c");
    for (parts = 0; strsep(&rest, ":");)
        parts++;
    assert(parts == 4 && rest == NULL);

    char *end;
    errno = 0;
    wide = strtol("123abc", &end, 10);
    assert(wide == 123 && *end == 'a' && errno == 0);
    assert(strtoul("99999999999999999999999", &end, 10) == ~0ul && errno == ERANGE && *end == 0);
    assert(strtod("2.5e3x", &end) == 2500 && *end == 'x');
    assert(atoi("17") == 17 && strtoimax("-5", NULL, 0) == -5);

    int numbers[8] = {5, 3, 8, 1, 9, 2, 7, 4}, key = 7;
    qsort(numbers, 8, sizeof numbers[0], ascending);
    assert(numbers[0] == 1 && numbers[7] == 9);
    int *found = bsearch(&key, numbers, 8, sizeof numbers[0], ascending);
    assert(found && *found == 7);
    void *tree = NULL;
    for (int i = 0; i < 8; i++)
        assert(**(int **)tsearch(&numbers[i], &tree, ascending) == numbers[i]);
    assert(tfind(&key, &tree, ascending));
    tdestroy(tree, (void (*)(void *))free == NULL ? NULL : (void (*)(void *))strlen);

    assert(strcasecmp("Hello", "hELLO") == 0 && strstr("haystack", "st") != NULL);
    assert(strspn("aabbc", "ab") == 4 && strcspn("xyz,", ",") == 3 && strpbrk("k=v", "=:"));
    assert(memmem("abcdef", 6, "cd", 2) && strchrnul("abc", 'z')[0] == 0);
    for (const char *c = "aZ5 _"; *c; c++)
        parts += isalpha((unsigned char)*c) + (toupper((unsigned char)*c) == 'A') + isspace(*c);
    assert(parts > 4);

    assert(modf(3.25, &real) == 0.25 && real == 3);
    assert(frexp(8.0, &other) == 0.5 && other == 4);
    float sine, cosine;
    sincosf(0, &sine, &cosine);
    assert(sine == 0 && cosine == 1 && fabs(pow(2, 10) - 1024) < 1e-9 && floorf(2.5f) == 2);

    wchar_t broad[32];
    assert(mbstowcs(broad, "breit", 32) == 5 && wcslen(broad) == 5 && iswalpha(broad[0]));
    wcscat(broad, L"er");
    assert(wcscmp(broad, L"breiter") == 0 && wcstol(L"12", NULL, 10) == 12);
    assert(wcstombs(text, broad, sizeof text) == 7 && strcmp(text, "breiter") == 0);
    assert(swprintf(broad, 32, L"%d|", 5) == 2 && broad[1] == L'|');

    char *made = NULL;
    assert(asprintf(&made, "%s=%d", "x", 1) == 3 && strcmp(made, "x=1") == 0);
    free(made);
    assert(strcmp(strerror(ENOENT), "No such file or directory") == 0);
    setenv("EFFECT", "seen", 1);
    assert(strcmp(getenv("EFFECT"), "seen") == 0);
    printf("done %s %d\n", text, number);
    return 0;
}
