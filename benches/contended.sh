#!/usr/bin/env bash
# Solving under high contention, on real recordings: benches/solving/contended.c (eight cells that all
# threads want, one access in twenty under a lock) is recorded until it fails, with the clock read at
# synchronisation calls alone and more often, and solved. Beside it, what recording costs: processor time
# of a long run, recorded and native, without the recorder's own work.
#
# usage: benches/contended.sh [ACCESSES:THREADS ...]      (default: 3000:4 10000:4 10000:16 30000:4)
#
# Environment: SYMBIOSIS (the binary; default: `symbiosis` in PATH), READINGS (bytes of the path between
# readings; default: "0 1024 1"), LIMIT (seconds for one solve; 60), LONG (accesses of the long run;
# 8000000).
set -euo pipefail
ulimit -c 0
root=$(cd "$(dirname "$0")/.." && pwd)
symbiosis=${SYMBIOSIS:-symbiosis}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- 3000:4 10000:4 10000:16 30000:4

"$symbiosis" cc -g -O1 -pthread "$root/benches/solving/contended.c" -o "$work/contended"
"${CC:-clang}" -g -O1 -pthread "$root/benches/solving/contended.c" -o "$work/native"

# Processor time of a command in seconds, the least of five runs; its status does not matter.
least() {
  for _ in 1 2 3 4 5; do
    rm -rf "$work/raw"
    mkdir -p "$work/raw/threads" "$work/raw/ir"
    /usr/bin/env time -f '%U %S' -o "$work/time" "$@" >/dev/null 2>&1 || true
    tail -n 1 "$work/time" | awk '{ print $1 + $2 }'
  done | sort -n | head -n 1
}

long=${LONG:-8000000}
native=$(least "$work/native" "$long" 4)
echo "| bytes between readings | recorded s | native s | log MB |"
echo "| --- | --- | --- | --- |"
for readings in ${READINGS:-0 1024 1}; do
  recorded=$(least env "SYMBIOSIS_READINGS=$readings" "SYMBIOSIS_TRACE_DIR=$work/raw" \
    "$work/contended" "$long" 4)
  size=$(du -sm "$work/raw" | cut -f 1)
  echo "| $readings | $recorded | $native | $size |"
done
echo
echo "| accesses asked for | threads | bytes between readings | events | accesses | failing schedule ms | processor s |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
for shape in "$@"; do
  accesses=${shape%:*} threads=${shape#*:}
  for readings in ${READINGS:-0 1024 1}; do
    trace=$work/$accesses-$threads-$readings.trace
    row="| $accesses | $threads | $readings"
    "$symbiosis" record --until-failure 200 --readings="$readings" -o "$trace" -- \
      "$work/contended" "$accesses" "$threads" >/dev/null 2>&1 || true
    if [ ! -d "$trace" ]; then
      echo "$row | none of 200 runs failed | | | |"
      continue
    fi
    # A search that is cut short has an answer, too.
    /usr/bin/env time -f '%U %S' -o "$work/time" "$symbiosis" solve "$trace" --no-replay --alternates 0 \
      --timeout "${LIMIT:-60}" --format json >"$work/answer" 2>"$work/errors" || true
    python3 - "$row" "$work/answer" $(tail -n 1 "$work/time") <<'END_OF_PYTHON'
import json, sys
row, answer, user, system = sys.argv[1:]
answer = json.load(open(answer))
stats = answer["stats"]
found = str(stats["solve_ms"]) if answer["verdict"] == "failing-schedule" else "none"
columns = [str(stats["events"]), str(stats["shared_accesses"]), found, "%.1f" % (float(user) + float(system))]
print(row + " | " + " | ".join(columns) + " |")
END_OF_PYTHON
  done
done
