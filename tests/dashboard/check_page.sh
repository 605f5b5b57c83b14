# The page's scripts, linted, formatted and type-checked: `check_page.sh lint|format`. Without npm nothing is done.
set -eu
cd "$(dirname "$0")"
if ! command -v npm >/dev/null; then
    echo "npm is not installed: the page's scripts are left out"
    exit 0
fi
[ -x node_modules/.bin/biome ] && [ -x node_modules/.bin/tsc ] ||
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm run --silent "$1"
