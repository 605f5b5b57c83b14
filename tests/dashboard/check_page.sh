# The page's scripts, linted, formatted and type-checked: `check_page.sh lint|format`. Without npm nothing is done.
# package.json names exact versions. There is no lock file: it would list the builds for all platforms, and
# `npm ci` fails where a registry has only some of them.
set -eu
cd "$(dirname "$0")"
if ! command -v npm >/dev/null; then
    echo "npm is not installed: the page's scripts are left out"
    exit 0
fi
[ -x node_modules/.bin/biome ] && [ -x node_modules/.bin/tsc ] ||
    npm install --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error
npm run --silent "$1"
