#!/usr/bin/env bash
# Sets up what building needs: compilers from Debian (only where one is missing), a Python environment at $1.
# Says in one line what it cannot set up itself.
set -euo pipefail
venv=$1
cd "$(dirname "$0")/.."

tools/packages.sh gcc:gcc g++:g++ gfortran:gfortran make:make cmake:cmake pkg-config:pkg-config python3:python3 \
    objdump:binutils /usr/include/stdio.h:libc6-dev
python3 -c 'import ensurepip, venv' 2>/dev/null || tools/packages.sh ensurepip:python3-venv

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "setup: titin needs Python 3.11 or newer; python3 is $(python3 --version)" >&2
    exit 1
fi
if ! command -v cargo >/dev/null; then
    echo "setup: Rust is missing; install it with: curl https://sh.rustup.rs -sSf | sh -s -- -y, then open a new shell" >&2
    exit 1
fi

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install -q --disable-pip-version-check -r requirements-dev.txt
