/*
 * Regression test @NAME@: @FAILURE@
 *
 * Made by `symbiosis test-case` (version @VERSION@). It runs the program under the thread schedule
 * below, under which the program failed, and looks how the program ends. The program has to be
 * built with `symbiosis cc`, `c++` or `rustc`; this file is plain C11 and POSIX (and C++), any
 * compiler will do. It reads nothing but itself, so it can be copied and edited at will.
 *
 * The cause:
@CAUSE@
 *
 * Usage: @NAME@_test [PROGRAM [ARGUMENT...]]
 *
 * Without PROGRAM, the environment variable SYMBIOSIS_TEST_PROGRAM names it, or else the macro of
 * that name (a string). Without ARGUMENTs, the recorded ones are used.
 *
 * Exit status: 0 passed, 1 failed, 77 skipped (the program is not instrumented), 99 the test could
 * not be run.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The program under test when nobody names another. */
#ifndef SYMBIOSIS_TEST_PROGRAM
#define SYMBIOSIS_TEST_PROGRAM @PROGRAM@
#endif

/* After so many seconds the program is ended, which counts as a failure. */
#ifndef SYMBIOSIS_TEST_TIMEOUT
#define SYMBIOSIS_TEST_TIMEOUT 60
#endif

/* The thread schedule under which the program failed, line by line. */
static const char *const schedule[] = {
@SCHEDULE@
};

/* How the recorded run failed. */
static const char failure[] = @FAILURE_TEXT@;
/* By this signal, or 0; else with this exit status. */
static const int failure_signal = @SIGNAL@;
static const int failure_status = @STATUS@;
/* What the failing program's output holds; empty when nothing is known. */
static const char failure_output[] = @OUTPUT@;

/* What the heap is watched for, as it was in the recorded run; empty when it is not. */
static const char detection[] = @DETECTION@;
/* After how many accesses that others may see, behind the schedule, a program that never ends has passed; empty for one that ends. */
static const char tail[] = @TAIL@;
/* The command that says with status 0 of the output that it is wrong; empty when the program fails by itself. */
static const char output_check[] = @CHECK@;

/* The arguments of the recorded run, without the program's name. */
static const char *const recorded_arguments[] = {
@ARGUMENTS@    NULL,
};

enum { PASSED = 0, FAILED = 1, SKIPPED = 77, NOT_RUN = 99 };

/* What the program's scheduler tells of the schedule, as it writes it into a file. */
struct report {
    uint64_t magic;
    uint32_t lines;
    uint32_t followed;
    uint32_t left_line;
    uint32_t left_reason;
    uint64_t left_site;
    uint64_t steps;
    uint64_t switches;
    uint32_t ended;
    uint32_t message_length;
    char message[2048];
    uint64_t held_back;
    uint64_t gave_up;
};

/* All threads waited for each other, and the process was ended for it. */
enum { ENDED_DEADLOCK = 1 };

static const uint64_t report_magic = UINT64_C(@MAGIC@);

/* The test's files are in a directory of its own. */
static char directory[512];
static char schedule_file[600];
static char report_file[600];
static char output_file[600];
/* What is printed to standard error, where the command above looks at standard output. */
static char error_file[600];

static void remove_files(void)
{
    unlink(error_file);
    unlink(schedule_file);
    unlink(report_file);
    unlink(output_file);
    rmdir(directory);
}

static int not_run(const char *what, const char *name, int error)
{
    fprintf(stderr, "@NAME@: the test could not be run: %s %s: %s\n", what, name, strerror(error));
    return NOT_RUN;
}

/* Makes the directory and writes the schedule into it. Gives 0, or an errno. */
static int make_files(void)
{
    const char *parent = getenv("TMPDIR");
    FILE *file;
    size_t line;
    int error;

    /* The program may change its directory, so the files' names have to be absolute. */
    if (parent == NULL || parent[0] != '/' || strlen(parent) > 400)
        parent = "/tmp";
    snprintf(directory, sizeof directory, "%s/symbiosis-test-XXXXXX", parent);
    if (mkdtemp(directory) == NULL)
        return errno;
    snprintf(schedule_file, sizeof schedule_file, "%s/schedule", directory);
    snprintf(report_file, sizeof report_file, "%s/report", directory);
    snprintf(output_file, sizeof output_file, "%s/output", directory);
    snprintf(error_file, sizeof error_file, "%s/error", directory);

    file = fopen(schedule_file, "w");
    if (file == NULL)
        return errno;
    for (line = 0; line < sizeof schedule / sizeof schedule[0]; line++)
        fprintf(file, "%s\n", schedule[line]);
    error = ferror(file) ? EIO : 0;
    return fclose(file) != 0 ? errno : error;
}

/* In the child: becomes the program. Only returns when that fails. */
static void become(char **command, int output, int errors)
{
    int input = isatty(STDIN_FILENO) ? open("/dev/null", O_RDONLY) : -1;

    if (input >= 0)
        dup2(input, STDIN_FILENO);
    setenv("SYMBIOSIS_SCHEDULE", schedule_file, 1);
    setenv("SYMBIOSIS_REPORT", report_file, 1);
    unsetenv("SYMBIOSIS_NOISE");
    unsetenv("SYMBIOSIS_TRACE_DIR");
    if (detection[0] != '\0')
        setenv("SYMBIOSIS_DETECT", detection, 1);
    else
        unsetenv("SYMBIOSIS_DETECT");
    if (tail[0] != '\0')
        setenv("SYMBIOSIS_TAIL_GATES", tail, 1);
    else
        unsetenv("SYMBIOSIS_TAIL_GATES");
    if (dup2(output, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0)
        execvp(command[0], command);
}

/*
 * Runs the program to its end or the time-out. Gives 0, or an errno when it could not be started.
 * Its output goes to a file, since a child that it leaves behind could keep a pipe open for ever.
 */
static int run(char **command, int *status, int *late)
{
    const struct timespec moment = { 0, 5 * 1000 * 1000 };
    struct timespec start, now;
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    int output, errors, told[2], error = 0;
    pid_t child, ended;

    output = open(output_file, flags, 0600);
    errors = open(output_check[0] != '\0' ? error_file : output_file, flags, 0600);
    if (output < 0 || errors < 0 || pipe(told) != 0)
        return errno;
    fflush(NULL);
    child = fork();
    if (child < 0)
        return errno;
    if (child == 0) {
        /* A successful exec closes the pipe, so the parent reads nothing. */
        fcntl(told[1], F_SETFD, FD_CLOEXEC);
        close(told[0]);
        become(command, output, errors);
        error = errno;
        _exit(write(told[1], &error, sizeof error) == (ssize_t)sizeof error ? NOT_RUN : FAILED);
    }
    close(output);
    close(errors);
    close(told[1]);
    if (read(told[0], &error, sizeof error) != (ssize_t)sizeof error)
        error = 0;
    close(told[0]);

    *late = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (;;) {
        ended = waitpid(child, status, WNOHANG);
        if (ended == child)
            return error;
        if (ended < 0 && errno != EINTR)
            return errno;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (!*late && now.tv_sec - start.tv_sec >= SYMBIOSIS_TEST_TIMEOUT) {
            *late = 1;
            kill(child, SIGKILL);
        }
        nanosleep(&moment, NULL);
    }
}

/* Reads the report; gives 0 when there is none. */
static int read_report(struct report *report)
{
    FILE *file = fopen(report_file, "rb");
    size_t count = 0;

    memset(report, 0, sizeof *report);
    if (file != NULL) {
        count = fread(report, sizeof *report, 1, file);
        fclose(file);
    }
    if (count != 1 || report->magic != report_magic)
        return 0;
    if (report->message_length >= sizeof report->message)
        report->message_length = (uint32_t)sizeof report->message - 1;
    report->message[report->message_length] = '\0';
    return 1;
}

/* Is this text in the program's output? */
static int said(const char *text)
{
    FILE *file = fopen(output_file, "rb");
    size_t length = strlen(text), have = 0, at;
    static char buffer[1 << 16];
    int found = 0;

    if (file == NULL || length == 0 || length >= sizeof buffer / 2) {
        if (file != NULL)
            fclose(file);
        return 0;
    }
    while (!found) {
        size_t got = fread(buffer + have, 1, sizeof buffer - have, file);
        if (got == 0)
            break;
        have += got;
        for (at = 0; at + length <= have && !found; at++)
            found = memcmp(buffer + at, text, length) == 0;
        if (have >= length) {
            /* The text may begin in this piece and end in the next. */
            memmove(buffer, buffer + have - (length - 1), length - 1);
            have = length - 1;
        }
    }
    fclose(file);
    return found;
}

static void show_file(const char *name, const char *what)
{
    static char buffer[1 << 16];
    FILE *file = fopen(name, "rb");
    size_t length = 0;

    if (file == NULL)
        return;
    if (fseek(file, -(long)sizeof buffer, SEEK_END) != 0)
        rewind(file);
    length = fread(buffer, 1, sizeof buffer, file);
    fclose(file);
    if (length == 0)
        return;
    printf("--- %s ---\n", what);
    fwrite(buffer, 1, length, stdout);
    printf("%s--- end ---\n", buffer[length - 1] == '\n' ? "" : "\n");
}

/* Shows the last 64 KiB of the program's output. */
static void show_output(void)
{
    show_file(output_file, "what the program printed");
    show_file(error_file, "what it printed to standard error");
}

/* The line of the schedule with this number, from 1. */
static const char *line_of_schedule(uint32_t number)
{
    size_t lines = sizeof schedule / sizeof schedule[0];

    return number >= 1 && number <= lines ? schedule[number - 1] : "";
}

/* Is it the turn that ends with the failure, `THREAD !`? */
static int is_failing_turn(const char *line)
{
    const char *mark = strchr(line, '!');

    return mark != NULL && mark != line && mark[-1] == ' ' && (mark[1] == '\0' || mark[1] == ' ');
}

/* Was the schedule followed for as long as it says what the threads do before the failure? */
static int was_followed(const struct report *report)
{
    return report->left_line == 0 || is_failing_turn(line_of_schedule(report->left_line));
}

static const char *why_left(uint32_t reason)
{
    switch (reason) {
    case 1: return "the thread ended before it came to this place";
    case 2: return "the thread waits for something that another thread has to do first";
    case 3: return "the thread did not come to this place in time";
    case 4: return "there is no such thread";
    case 5: return "the process ended before that";
    default: return "no reason was given";
    }
}

/* Says where the program left the schedule. */
static void show_departure(const struct report *report)
{
    printf("line %lu of the schedule (%s): %s", (unsigned long)report->left_line,
           line_of_schedule(report->left_line), why_left(report->left_reason));
    if (report->message_length > 0)
        printf("; %s", report->message);
    printf("\n");
}

static int failed_alike(int status)
{
    if (failure_output[0] != '\0' && !said(failure_output))
        return 0;
    if (failure_signal != 0)
        return WIFSIGNALED(status) && WTERMSIG(status) == failure_signal;
    return WIFEXITED(status) && WEXITSTATUS(status) == failure_status;
}

static int judge_failure(const struct report *report, int status)
{
    if (report->ended == ENDED_DEADLOCK)
        printf("FAILED: all threads wait for each other: %s\n", report->message);
    else if (failed_alike(status))
        printf("FAILED: the bug is still there: %s\n", failure);
    else
        printf("FAILED: the program fails under this schedule, but not as recorded: %s\n", failure);
    if (WIFSIGNALED(status))
        printf("The program was ended by signal %d (%s).\n", WTERMSIG(status),
               strsignal(WTERMSIG(status)));
    else
        printf("The program ended with exit status %d.\n", WEXITSTATUS(status));
    if (!was_followed(report)) {
        printf("The program left the schedule before that at ");
        show_departure(report);
    }
    show_output();
    return FAILED;
}

/* Asks the command whether the output is wrong. Gives its status, or -1 when it could not look. */
static int check_output(void)
{
    int status = 0;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        int input = open(output_file, O_RDONLY);

        setenv("SYMBIOSIS_STATUS", "0", 1);
        if (input >= 0 && dup2(input, STDIN_FILENO) >= 0)
            execl("/bin/sh", "sh", "-c", output_check, (char *)NULL);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) < 126 ? WEXITSTATUS(status) : -1;
}

/* Where the program ended well. */
static int judge_output(const struct report *report)
{
    int answer = output_check[0] != '\0' ? check_output() : 1;

    if (answer < 0) {
        fprintf(stderr, "@NAME@: the test could not be run: the command that looks at the output failed: %s\n",
                output_check);
        return NOT_RUN;
    }
    if (answer == 0) {
        printf("FAILED: the bug is still there: %s\n", failure);
        if (!was_followed(report)) {
            printf("The program left the schedule before that at ");
            show_departure(report);
        }
        show_output();
        return FAILED;
    }
    if (was_followed(report)) {
        printf("passed: the schedule was followed to its end, and the program did not fail\n");
    } else {
        printf("passed: the schedule has become impossible, which counts as fixed, at ");
        show_departure(report);
    }
    return PASSED;
}

static int judge(const char *program, int status, int late)
{
    struct report report;
    int reported = read_report(&report);

    if (late) {
        printf("FAILED: the program did not end within %d seconds\n", (int)SYMBIOSIS_TEST_TIMEOUT);
        show_output();
        return FAILED;
    }
    if (!reported) {
        printf("skipped: %s did not follow the schedule: it is not built with `symbiosis cc`, "
               "`c++` or `rustc`, or with another version than this test\n", program);
        show_output();
        return SKIPPED;
    }
    if (report.ended == ENDED_DEADLOCK || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return judge_failure(&report, status);
    return judge_output(&report);
}

int main(int argc, char **argv)
{
    size_t recorded = sizeof recorded_arguments / sizeof recorded_arguments[0];
    const char *program = getenv("SYMBIOSIS_TEST_PROGRAM");
    char **command;
    size_t index, count = 0;
    int status = 0, late = 0, error, verdict;

    if (argc > 1)
        program = argv[1];
    else if (program == NULL || program[0] == '\0')
        program = SYMBIOSIS_TEST_PROGRAM;
    if (program[0] == '\0') {
        fprintf(stderr, "usage: %s PROGRAM [ARGUMENT...]\n", argv[0]);
        return NOT_RUN;
    }

    command = (char **)calloc(recorded + (size_t)argc + 1, sizeof *command);
    if (command == NULL)
        return not_run("cannot start", program, ENOMEM);
    command[count++] = (char *)program;
    if (argc > 2) {
        for (index = 2; index < (size_t)argc; index++)
            command[count++] = argv[index];
    } else {
        for (index = 0; index + 1 < recorded; index++)
            command[count++] = (char *)recorded_arguments[index];
    }

    error = make_files();
    if (error != 0) {
        free(command);
        remove_files();
        return not_run("cannot write", directory, error);
    }
    error = run(command, &status, &late);
    verdict = error != 0 ? not_run("cannot start", program, error) : judge(program, status, late);
    free(command);
    remove_files();
    return verdict;
}
