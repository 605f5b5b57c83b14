#!/bin/sh
# Everything `make` needs: tmux, a virtual environment in .venv, this package in it.
#
#   sh tools/setup.sh run     the package
#   sh tools/setup.sh dev     the package and the tools that check it
#   sh tools/setup.sh all     these, and what clusters need (Ray: 300 MB)
#
# Quick when there is nothing to do. PYTHON=/path/to/python chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."
kind=${1:?run, dev or all}
unset PYTHONPATH PYTHONHOME
export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '%s\n' "$*" >&2; }

stop() {
    say "error: $1"
    shift
    for line in "$@"; do say "  $line"; done
    exit 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if is_new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    if [ -n "${PYTHON:-}" ]; then
        stop "PYTHON=$PYTHON is not Python 3.11 or newer."
    fi
    stop "Python 3.11 or newer is needed." \
        "Debian, Ubuntu:  apt-get install python3   (Debian 12, Ubuntu 24.04 or newer)" \
        "elsewhere:       https://www.python.org/downloads/, then  make PYTHON=/path/to/python3 …"
}

# Packages are installed where that needs no password; otherwise the command is named.
install_packages() {
    command -v apt-get >/dev/null || stop "These are missing: $*" "Install them with your system's package manager." \
        "macOS: brew install $*"
    if [ "$(id -u)" = 0 ]; then
        as_root=""
    elif sudo -n true 2>/dev/null; then
        as_root="sudo -n"
    else
        stop "These packages are missing: $*" "Run this, then start again:" \
            "sudo apt-get update && sudo apt-get install -y $*"
    fi
    say "Installing $*"
    get="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0"
    $get install -y --no-install-recommends "$@" >/dev/null 2>&1 </dev/null && return
    $get update </dev/null >/dev/null || say "apt-get update failed; trying without"
    $get install -y --no-install-recommends "$@" </dev/null >/dev/null || stop "apt-get could not install $*"
}

require_tools() {
    missing=""
    command -v git >/dev/null || missing="$missing git"
    command -v tmux >/dev/null || missing="$missing tmux"
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        case $("$python" -c 'import os, sys; print(os.path.realpath(sys.executable))') in
            /usr/bin/*) missing="$missing $("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')" ;;
            *) stop "$python cannot make virtual environments: it comes without ensurepip." \
                "Choose another interpreter:  make PYTHON=/usr/bin/python3 …" ;;
        esac
    fi
    # shellcheck disable=SC2086  # a list of words
    [ -z "$missing" ] || install_packages $missing
}

# What an installation depends on; a moved checkout or another interpreter needs a new one.
fingerprint() {
    printf '%s\n' "$PWD" "$python" "$("$python" -c 'import sys; print(sys.version)')"
    cksum pyproject.toml
}

is_installed() {
    [ -x .venv/bin/af ] && .venv/bin/python -c pass 2>/dev/null && [ "$(cat ".venv/installed-$1" 2>/dev/null)" = "$wanted" ]
}

make_environment() {
    if [ "$(sed -n 1,3p .venv/made-for 2>/dev/null)" != "$(fingerprint | sed -n 1,3p)" ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        rm -rf .venv
        "$python" -m venv .venv
        fingerprint >.venv/made-for
    fi
}

install_package() {
    case $kind in
        run) extra="" ;;
        all) extra="[dev,fleet]" ;;
        *) extra="[$kind]" ;;
    esac
    say "Installing agent-farm$extra into .venv (the first time about 200 MB are fetched)"
    rm -f .venv/installed-*
    .venv/bin/python -m pip install --quiet -e ".$extra" </dev/null || stop "pip could not install agent-farm." \
        "Its message is above. Behind a proxy or a mirror, pip's own settings apply (PIP_INDEX_URL, HTTPS_PROXY)."
    printf '%s\n' "$wanted" >".venv/installed-$kind"
}

python=$(find_python)
require_tools
wanted=$(fingerprint)
case $kind in  # each is part of the next one
    run) enough="run dev all" ;;
    dev) enough="dev all" ;;
    *) enough="all" ;;
esac
for one in $enough; do
    ! is_installed "$one" || exit 0
done
make_environment
install_package
