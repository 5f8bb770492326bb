#!/usr/bin/env bash
# check.sh TURNWIRE - plays the scenes against the program at this path; see README.md.
# Prints a line a scene. Exit codes: 0 all passed, 1 some didn't, 77 nothing could be played here; then the last line
# says why.
set -euo pipefail
turnwire=$(realpath "${1:?the path of turnwire}")
cd "$(dirname "${BASH_SOURCE[0]}")"

# What this build speaks.
can() { "$turnwire" "$@" --help >/dev/null 2>&1; }
parts=()
! can as claude || parts+=(ours)
[ -z "${INTEROP_CONTROL-}" ] || parts+=(control)
if [ ${#parts[@]} = 0 ]; then
    echo 'turnwire is no agent that the Claude SDKs can start (there is no `turnwire as claude`)'
    exit 77
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
./install.sh ${INTEROP_CONTROL:+--agent} 2>"$log" || code=$?
cat "$log" >&2
if [ "$code" != 0 ]; then
    tail -n 1 "$log"
    exit "$code"
fi

failed=0
play() { node_modules/bun/bin/bun.exe run.ts "$@" || failed=1; }
for part in "${parts[@]}"; do
    case $part in
        ours) play python "$turnwire"; play typescript "$turnwire" ;;
        # The SDKs with Claude Code itself. It takes the longest, and changes only with the scenes.
        control) play python claude; play typescript claude ;;
    esac
done
exit "$failed"
