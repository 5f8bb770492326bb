#!/usr/bin/env bash
# install.sh - put the real omp and the bun that runs it below this folder, in the versions of package-lock.json.
#
# Idempotent: once installed, a run only makes sure that omp starts (< 2 s). About 780 MB on the disk.
# Needs npm and node; where they're missing it takes Debian's, if it may.
# Exit codes: 0 ready; 77 can't be had here, and the last line of stderr says why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

say() { printf 'interop/omp: %s\n' "$*" >&2; }
skip() { say "$*"; exit 77; }

bun=node_modules/bun/bin/bun.exe
omp=node_modules/@oh-my-pi/pi-coding-agent/dist/cli.js
stamp=node_modules/.installed
wanted=$(cat package.json package-lock.json | cksum)

# omp reads its settings at every start, so it gets a home of its own.
works() {
    local home version
    home=$(mktemp -d)
    version=$(HOME=$home timeout 60 "$bun" "$omp" --version 2>"$home/why") || { tail -n 1 "$home/why" >&2; rm -rf "$home"; return 1; }
    rm -rf "$home"
    say "ready: $version, bun $("$bun" --version)"
}

if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && works; then
    exit 0
fi

if ! { command -v npm && command -v node; } >/dev/null; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || skip 'no npm here, and no way to install it'
    export DEBIAN_FRONTEND=noninteractive
    apt_opts=(-q -y -o DPkg::Lock::Timeout=300)
    { apt-get "${apt_opts[@]}" update && apt-get "${apt_opts[@]}" install --no-install-recommends nodejs npm; } >/dev/null 2>&1 ||
        skip 'no npm here, and Debian gave none'
fi

rm -f "$stamp"
# Not `npm ci`: a registry need not have omp's native part for every platform, and the lock names those that were
# found. What it names is taken as it is; `--no-save` leaves it alone. No package's own scripts run but bun's, which
# puts the program in its place.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { npm install --no-save --ignore-scripts --no-audit --no-fund && node node_modules/bun/install.js; } >"$log" 2>&1; then
    cat "$log" >&2
    skip "the packages can't be installed here: $(grep -m 1 -E 'npm error|Error' "$log" || tail -n 1 "$log")"
fi
works || skip "omp doesn't start on this machine ($(uname -sm))"
printf '%s\n' "$wanted" >"$stamp"
