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
! can drive claude || parts+=(drive)
[ -z "${INTEROP_CONTROL-}" ] || parts+=(control)
if [ ${#parts[@]} = 0 ]; then
    echo 'this turnwire has no `as claude` for the Claude SDKs to start, and no `drive claude`'
    exit 77
fi
agent=
case " ${parts[*]} " in *' drive '* | *' control '*) agent=--agent ;; esac
check=()
! can check --protocol claude || check=(--check "$turnwire")

log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
./install.sh $agent 2>"$log" || code=$?
cat "$log" >&2
if [ "$code" != 0 ]; then
    tail -n 1 "$log"
    exit "$code"
fi

failed=0
play() { node_modules/bun/bin/bun.exe run.ts "$@" "${check[@]}" || failed=1; }
for part in "${parts[@]}"; do
    case $part in
        ours) play python "$turnwire"; play typescript "$turnwire" ;;
        drive)
            ! can as claude || play drive-own "$turnwire"
            play drive "$turnwire"
            ;;
        # The SDKs with Claude Code itself. It takes the longest, and changes only with the scenes.
        control) play python claude; play typescript claude ;;
    esac
done
exit "$failed"
