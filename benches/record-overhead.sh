#!/usr/bin/env bash
# What recording costs: whole programs of about a second of work, against the same programs native
# and under ThreadSanitizer.
#
# usage: benches/record-overhead.sh [PROGRAM ...]      (default: all of benches/programs)
#
# Each program is built three times at -O2: native, with -fsanitize=thread, and with `symbiosis cc`.
# The three take turns, ROUNDS times; each round's times are divided by the native time of the same
# round, and medians of these ratios are printed, for processor time (user and system, whole process)
# and for wall time. The recorded program writes its raw trace directory, as under `symbiosis record`;
# sealing, which `record` does after the program has ended, is not part of it. The sizes are those of
# the raw streams of the last round, before compression.
#
# Environment: SYMBIOSIS (the binary; default: `symbiosis` in PATH), ROUNDS (5), LEVEL (-O2), TRACES
# (a directory to write the traces in; default: a temporary one), KEEP (a directory to leave the
# programs in).
set -euo pipefail
ulimit -c 0
root=$(cd "$(dirname "$0")/.." && pwd)
symbiosis=${SYMBIOSIS:-symbiosis}
rounds=${ROUNDS:-5}
level=${LEVEL:--O2}
work=$(mktemp -d)
traces=${TRACES:-$work}
trap 'rm -rf "$work" "$traces/overhead.raw"' EXIT

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
    execv(arguments[1], arguments + 1);
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
        path=$((path + $(word "$page" 152) + $(word "$page" 0) - $(word "$page" 32)))
        values=$((values + $(word "$page" 168) + $(word "$page" 16) - $(word "$page" 40)))
    done
    echo "$path $values"
}

build() {
    local source=$1 to=$2 clang=clang compiler=cc
    if [[ $source == *.cc ]]; then clang="clang++ -std=c++17" compiler="c++ -std=c++17"; fi
    # shellcheck disable=SC2086 # The standard is an option of its own.
    {
        $clang -g "$level" -pthread "$source" -o "$to/native"
        $clang -g "$level" -pthread -fsanitize=thread "$source" -o "$to/tsan"
        "$symbiosis" $compiler -g "$level" -pthread "$source" -o "$to/ours"
    }
}

overhead() {
    local name=$1 source directory sizes
    source=$(ls "$root/benches/programs/$name".c*)
    directory=${KEEP:-$work}/$name
    mkdir -p "$directory"
    build "$source" "$directory"
    "$directory/native" >/dev/null
    : >"$directory/times"
    for ((round = 0; round < rounds; round++)); do
        rm -rf "$traces/overhead.raw"
        mkdir "$traces/overhead.raw"
        {
            "$work/measure" "$directory/native"
            SYMBIOSIS_TRACE_DIR=$traces/overhead.raw "$work/measure" "$directory/ours"
            "$work/measure" "$directory/tsan"
        } | tr '\n' ' ' >>"$directory/times"
        echo >>"$directory/times"
    done
    sizes=$(stream_bytes "$traces/overhead.raw")
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
        }' "$directory/times"
}

if [[ $# -eq 0 ]]; then
    for source in "$root"/benches/programs/*.c*; do
        source=${source##*/}
        set -- "$@" "${source%.*}"
    done
fi
echo "| program | native s | recorded | TSan | recorded, wall | TSan, wall | path MB | values MB |" \
    "log MB/s | native peak MiB | recorded peak MiB |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
for program in "$@"; do overhead "$program"; done
