#!/usr/bin/env bash
# What `symbiosis solve` takes as a whole, without replay, by the length of the run: a real program
# (benches/solving/ledger.c) with a lost update among many other accesses is recorded under noise until it
# fails, and solved.
#
# usage: benches/solve-scale.sh [ROUNDS ...]      (default: 250 2500 25000; four threads, two accesses a
#                                                  round and thread)
#
# Environment: SYMBIOSIS (the binary; default: `symbiosis` in PATH), CHECKED (the program's second
# argument; default: 0), OPTIONS (more options for `solve`), LIMIT (seconds for one solve; 300).
set -euo pipefail
ulimit -c 0
root=$(cd "$(dirname "$0")/.." && pwd)
symbiosis=${SYMBIOSIS:-symbiosis}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- 250 2500 25000

"$symbiosis" cc -g -O1 -pthread "$root/benches/solving/ledger.c" -o "$work/ledger"
echo "| rounds | events | accesses | symex ms | failing schedule ms | root cause ms | alternates ms | whole s | peak MiB |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
for rounds in "$@"; do
  trace=$work/$rounds.trace
  "$symbiosis" record --noise --until-failure 200 -o "$trace" -- "$work/ledger" "$rounds" "${CHECKED:-0}" \
    >/dev/null 2>&1 || true
  # shellcheck disable=SC2086
  if ! /usr/bin/env time -f '%e %M' -o "$work/time" timeout "${LIMIT:-300}" \
    "$symbiosis" solve "$trace" --no-replay --format json ${OPTIONS:-} >"$work/answer" 2>"$work/errors"; then
    echo "| $rounds | no answer: $(tail -n 1 "$work/errors") | | | | | | $(tail -n 1 "$work/time" | tr ' ' ',') | |"
    continue
  fi
  python3 - "$rounds" "$work/answer" $(tail -n 1 "$work/time") <<'END'
import json, sys
rounds, answer, seconds, memory = sys.argv[1:]
stats = json.load(open(answer))["stats"]
columns = ["events", "shared_accesses", "symex_ms", "solve_ms", "root_cause_ms", "alternates_ms"]
row = [rounds] + [str(stats[c]) for c in columns] + [seconds, str(int(memory) // 1024)]
print("| " + " | ".join(row) + " |")
END
done
