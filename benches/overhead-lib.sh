# What the scripts that measure recording share; sourced by them.
#
# Expects `work`, a directory for temporary files.
#
# shellcheck shell=bash

# Prints wall seconds, processor seconds and peak memory in KiB of a program.
cat >"$work/measure.c" <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **arguments) {
  struct timespec begin, end;
  struct rusage usage;
  int status;
  if (count < 2) return 2;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), 1);
    execvp(arguments[1], arguments + 1);
    _exit(127);
  }
  if (child < 0 || wait4(child, &status, 0, &usage) < 0) return 1;
  clock_gettime(CLOCK_MONOTONIC, &end);
  double wall = end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9;
  double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
               (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  printf("%.4f %.4f %ld\n", wall, cpu, usage.ru_maxrss);
  return status != 0;
}
END
clang -O2 "$work/measure.c" -o "$work/measure"

# The 64-bit word at an offset of a control page.
word() { od -An -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }

# The bytes of all threads' streams: of the path, of the values.
stream_bytes() {
    local path=0 values=0 page
    for page in "$1"/threads/*.ctl; do
        path=$((path + $(word "$page" 160) + $(word "$page" 0) - $(word "$page" 40)))
        values=$((values + $(word "$page" 176) + $(word "$page" 16) - $(word "$page" 48)))
    done
    echo "$path $values"
}

# The first two lines of the table.
overhead_header() {
    echo "| program | native s | recorded | TSan | recorded, wall | TSan, wall | path MB | values MB |" \
        "log MB/s | native peak MiB | recorded peak MiB |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
}

# A line of the table, from a file with a line for each round: wall seconds, processor seconds and peak
# memory in KiB, natively, recorded and under ThreadSanitizer; and from the bytes of both streams.
overhead_row() { # name times sizes
    local name=$1 times=$2 sizes=$3
    awk -v name="$name" -v sizes="$sizes" '
        function median(values, count,    i, j, key) {
            for (i = 2; i <= count; i++) {
                key = values[i]
                for (j = i - 1; j >= 1 && values[j] > key; j--) values[j + 1] = values[j]
                values[j + 1] = key
            }
            return values[int((count + 1) / 2)]
        }
        {
            native[NR] = $2; native_memory[NR] = $3; ours_cpu[NR] = $5; ours_memory[NR] = $6
            ours[NR] = $5 / $2; ours_wall[NR] = $4 / $1
            tsan[NR] = $8 / $2; tsan_wall[NR] = $7 / $1
        }
        END {
            split(sizes, size, " ")
            seconds = median(ours_cpu, NR)
            printf "| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.1f | %.1f | %.0f | %.0f | %.0f |\n",
                name, median(native, NR), median(ours, NR), median(tsan, NR),
                median(ours_wall, NR), median(tsan_wall, NR), size[1] / 1e6, size[2] / 1e6,
                (size[1] + size[2]) / 1e6 / seconds, median(native_memory, NR) / 1024,
                median(ours_memory, NR) / 1024
        }' "$times"
}
