#!/usr/bin/env bash
# install.sh [--agent] - put the Claude SDKs and the bun that runs the scenes below this folder, in the versions of
# package-lock.json and python/*.txt; with --agent the real Claude Code too.
#
# Idempotent: once installed, a run only makes sure that the parts start (< 2 s). About 250 MB on the disk, and 390 MB
# for the agent. Needs npm, node and Python 3.10 with venv; where they're missing it takes Debian's, if it may.
# Exit codes: 0 ready; 77 can't be had here, and the last line of stderr says why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

say() { printf 'interop/claude: %s\n' "$*" >&2; }
skip() { say "$*"; exit 77; }

agent=${1-}
bun=node_modules/bun/bin/bun.exe
python=venv/bin/python
log=$(mktemp)
trap 'rm -rf "$log"' EXIT

# A home of its own, since the agent writes its settings at every start.
works() {
    local home code=0
    home=$(mktemp -d)
    {
        "$bun" --version >/dev/null &&
            "$python" -c 'import claude_agent_sdk' &&
            { [ -z "$agent" ] || HOME=$home DISABLE_AUTOUPDATER=1 timeout 60 node_modules/@anthropic-ai/claude-code-*/claude --version; }
    } >"$log" 2>&1 || code=1
    rm -rf "$home"
    return "$code"
}

# Runs a command unless the stamp says that it ran with these files: once STAMP FILE FILE CMD…
once() {
    local stamp=$1 wanted
    wanted=$(cat "$2" "$3" | cksum)
    shift 3
    [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
    rm -f "$stamp"
    if ! "$@" >"$log" 2>&1; then
        cat "$log" >&2
        skip "the packages can't be installed here: $(grep -m 1 -E 'npm error|ERROR|Error' "$log" || tail -n 1 "$log")"
    fi
    printf '%s\n' "$wanted" >"$stamp"
}

debian() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || skip "no $1 here, and no way to install it"
    export DEBIAN_FRONTEND=noninteractive
    local opts=(-q -y -o DPkg::Lock::Timeout=300)
    { apt-get "${opts[@]}" update && apt-get "${opts[@]}" install --no-install-recommends "$@"; } >/dev/null 2>&1 ||
        skip "no $1 here, and Debian gave none"
}

# The SDK's packages that bring the agent along, one for each platform, are left out by package.json. No package's own
# scripts run but bun's, which puts the program in its place.
node_packages() {
    npm ci --ignore-scripts --no-audit --no-fund "$@" && node node_modules/bun/install.js
}

# The wheel of this package brings the agent along; its source has the same code in 400 KB, and needs hatchling to
# become a wheel.
python_packages() {
    rm -rf venv
    python3 -m venv venv &&
        "$python" -m pip install --quiet --require-hashes -r python/build.txt &&
        "$python" -m pip install --quiet --require-hashes --no-build-isolation --no-binary claude-agent-sdk -r python/requirements.txt
}

# What was there and doesn't start any more is installed anew.
works || rm -f node_modules/.installed node_modules/.with-agent venv/.installed
{ command -v npm && command -v node; } >/dev/null || debian npm nodejs
python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || debian python3-venv python3

if [ -n "$agent" ]; then
    once node_modules/.with-agent package.json package-lock.json node_packages
    cp node_modules/.with-agent node_modules/.installed
else
    once node_modules/.installed package.json package-lock.json node_packages --omit=dev
fi
once venv/.installed python/build.txt python/requirements.txt python_packages
works || { cat "$log" >&2; skip "what was installed doesn't start on this machine ($(uname -sm)): $(tail -n 1 "$log")"; }
say "ready: SDKs${agent:+ and $(cat "$log")}"
