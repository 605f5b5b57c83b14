#!/bin/sh
# The AI CLIs that the `runtimes` tests drive, pinned by tests/package-lock.json, into tests/node_modules.
# Run again it does nothing, until the lock file changes.
set -eu
cd "$(dirname "$0")"

if ! command -v npm >/dev/null; then
    echo "install_runtimes.sh: npm is not installed; install Node 20 or newer (Debian: apt install npm)" >&2
    exit 1
fi
stamp=node_modules/.installed-from
if [ -f "$stamp" ] && cmp -s package-lock.json "$stamp"; then
    exit 0
fi
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
# These two put the native program in place of a script; npm runs install scripts only where they are approved.
(cd node_modules/@anthropic-ai/claude-code && node install.cjs)
(cd node_modules/opencode-ai && node postinstall.mjs)
cp package-lock.json "$stamp"
