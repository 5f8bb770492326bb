#!/usr/bin/env bash
# Compiles what `turnwire spec openmax --format typescript` prints, with a module that uses it rightly, one whose every
# misuse must be refused, and one that must not compile at all. Needs npm: from the PATH, or else from Debian.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

if ! command -v npm >/dev/null; then
    if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
        export DEBIAN_FRONTEND=noninteractive
        apt-get -q -y -o DPkg::Lock::Timeout=300 update >/dev/null
        apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends nodejs npm >/dev/null
    else
        echo 'check-typescript: npm is not on PATH; install Node.js with npm' >&2
        exit 1
    fi
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$root"/tools/typescript/*.{json,ts} "$folder"
(cd "$root" && cargo run -q --locked -p turnwire-cli -- spec openmax --format typescript) >"$folder/openmax.ts"
cd "$folder"
npm ci --ignore-scripts --no-audit --no-fund >/dev/null

# The module that must fail is left out first, and is what fails then.
mv misuse.ts misuse.held
npx --no-install tsc -p .
mv misuse.held misuse.ts
if npx --no-install tsc -p . >log; then
    echo 'check-typescript: misuse.ts compiles' >&2
    exit 1
fi
grep -q '^misuse.ts.*TS2339' log
if grep -v '^misuse.ts' log >&2; then
    exit 1
fi
