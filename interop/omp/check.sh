#!/usr/bin/env bash
# check.sh TURNWIRE - plays the scenes against the program at this path; see README.md.
# Prints a line a scene. Exit codes: 0 all passed, 1 some didn't, 77 the real omp can't be had here; then the last
# line says why.
set -euo pipefail
turnwire=$(realpath "${1:?the path of turnwire}")
cd "$(dirname "${BASH_SOURCE[0]}")"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
./install.sh 2>"$log" || code=$?
cat "$log" >&2
if [ "$code" != 0 ]; then
    tail -n 1 "$log"
    exit "$code"
fi

failed=0
play() { node_modules/bun/bin/bun.exe run.ts "$@" || failed=1; }
play client "$turnwire"
play next-client "$turnwire"
play drive-own "$turnwire"
play drive "$turnwire"
# The control: omp's own client with omp. It takes the longest, and changes only with the scenes and the rules.
if [ -n "${INTEROP_CONTROL-}" ]; then
    play check "$turnwire"
fi
exit "$failed"
