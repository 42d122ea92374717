// Files, directories, streams, time, users, and the command line.
#define _GNU_SOURCE
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <getopt.h>
#include <glob.h>
#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void stream(const char *path)
{
    FILE *file = fopen(path, "w+");
    assert(file);
    fprintf(file, "%s %d\n", "first", 1);
    fputs("second line\n", file);
    putc_unlocked('x', file);
    assert(fwrite("yz\n", 1, 3, file) == 3);
    rewind(file);
    char buffer[64], *line = NULL;
    size_t room = 0;
    int number;
    assert(fscanf(file, "%63s %d\n", buffer, &number) == 2 && number == 1);
    assert(strcmp(buffer, "first") == 0);
    assert(fgets(buffer, sizeof buffer, file) && strcmp(buffer, "second line\n") == 0);
    assert(getc_unlocked(file) == 'x' && ungetc('x', file) == 'x');
    assert(getline(&line, &room, file) == 4 && strcmp(line, "xyz\n") == 0 && room >= 5);
    assert(getline(&line, &room, file) == -1 && feof_unlocked(file));
    free(line);
    fpos_t place;
    assert(fgetpos(file, &place) == 0 && fseek(file, 0, SEEK_SET) == 0 && ftell(file) == 0);
    assert(fread(buffer, 1, 5, file) == 5 && memcmp(buffer, "first", 5) == 0);
    fclose(file);
}

static void descriptors(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert(fd >= 0 && ftruncate(fd, 0) == 0);
    char one[4], two[8];
    struct iovec parts[2] = {{"abcd", 4}, {"efgh", 4}};
    assert(writev(fd, parts, 2) == 8 && lseek(fd, 0, SEEK_SET) == 0);
    struct iovec rooms[2] = {{one, 4}, {two, 8}};
    assert(readv(fd, rooms, 2) == 8 && memcmp(one, "abcd", 4) == 0 && two[3] == 'h');
    assert(pread(fd, two, 3, 2) == 3 && two[0] == 'c');
    struct stat status;
    assert(fstat(fd, &status) == 0 && status.st_size == 8 && S_ISREG(status.st_mode));
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert(map != MAP_FAILED && munmap(map, 4096) == 0);
    close(fd);
    assert(stat("/no/such/file", &status) == -1 && errno == ENOENT);
    int ends[2];
    assert(pipe(ends) == 0 && write(ends[1], "hi", 3) == 3 && read(ends[0], two, 8) == 3);
    assert(strcmp(two, "hi") == 0);
    close(ends[0]);
    close(ends[1]);
    struct statvfs system;
    assert(statvfs("/", &system) == 0 && system.f_bsize > 0);
}

static void directories(const char *folder)
{
    int files = 0;
    DIR *dir = opendir(folder);
    assert(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        files += entry->d_name[0] != '.';
    closedir(dir);
    assert(files == 2);
    char pattern[64];
    snprintf(pattern, sizeof pattern, "%s/*", folder);
    glob_t found;
    assert(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 2);
    assert(strncmp(found.gl_pathv[0], folder, strlen(folder)) == 0);
    globfree(&found);
    char path[] = "/usr/lib/file.so";
    assert(strcmp(basename(path), "file.so") == 0);
    assert(fnmatch("*.so", "file.so", 0) == 0);
    assert(getcwd(pattern, sizeof pattern) && pattern[0] == '/');
    char *real = realpath("/usr/..", NULL);
    assert(strcmp(real, "/") == 0);
    free(real);
}

static void times(void)
{
    time_t moment = 86400;
    struct tm parts, *again;
    assert(gmtime_r(&moment, &parts) && parts.tm_mday == 2 && parts.tm_year == 70);
    again = gmtime(&moment);
    assert(again->tm_mon == 0 && timegm(&parts) == 86400);
    char text[64];
    assert(strftime(text, sizeof text, "%Y-%m-%d", &parts) == 10);
    assert(strcmp(text, "1970-01-02") == 0);
    assert(strptime("2001-02-03", "%Y-%m-%d", &parts) && parts.tm_year == 101);
    struct timespec now;
    struct timeval then;
    assert(clock_gettime(CLOCK_REALTIME, &now) == 0 && gettimeofday(&then, NULL) == 0);
    assert(then.tv_sec >= now.tv_sec && time(NULL) > 0);
    struct rusage usage;
    struct rlimit limit;
    assert(getrusage(RUSAGE_SELF, &usage) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    assert(limit.rlim_cur > 0);
}

static void system_(void)
{
    struct utsname name;
    assert(uname(&name) == 0 && strcmp(name.sysname, "Linux") == 0);
    struct passwd *user = getpwuid(0);
    assert(user && strcmp(user->pw_name, "root") == 0 && user->pw_dir[0] == '/');
    struct group *group = getgrgid(0);
    assert(group && strcmp(group->gr_name, "root") == 0);
    struct passwd entry, *result = NULL;
    char buffer[1024];
    assert(getpwnam_r("root", &entry, buffer, sizeof buffer, &result) == 0 && result == &entry);
    assert(entry.pw_uid == 0);
    regex_t regex;
    regmatch_t match[2];
    assert(regcomp(&regex, "b(.)d", REG_EXTENDED) == 0);
    assert(regexec(&regex, "abcde", 2, match, 0) == 0 && match[1].rm_so == 2);
    regfree(&regex);
    char *arguments[] = {"program", "-v", "-o", "out", "file", NULL};
    int verbose = 0, option;
    const char *output = "";
    while ((option = getopt(5, arguments, "vo:")) != -1)
        if (option == 'v')
            verbose = 1;
        else
            output = optarg;
    assert(verbose && strcmp(output, "out") == 0 && optind == 4);
}

int main(void)
{
    char folder[] = "/tmp/effectsXXXXXX", first[64], second[64];
    assert(mkdtemp(folder));
    snprintf(first, sizeof first, "%s/first", folder);
    snprintf(second, sizeof second, "%s/second", folder);
    stream(first);
    descriptors(second);
    directories(folder);
    times();
    system_();
    unlink(first);
    unlink(second);
    assert(rmdir(folder) == 0);
    puts("done");
    return 0;
}
