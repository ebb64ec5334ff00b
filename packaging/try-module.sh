#!/usr/bin/env bash
# Loads the module file in Lmod, in an empty Debian 13 with the wheel of `make wheel`. tests/packaging/test_module.py does
# the same in Environment Modules. Needs what try-wheel.sh needs.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/titin-try-module.XXXXXX")
trap 'rm -rf "$work"' EXIT

packaging/empty-system.sh "$work/root" trixie python3,python3-venv,pkg-config,lmod
packaging/install-wheel.sh "$work/root" "$@"
cp -r packaging/modulefiles "$work/root/modulefiles"
packaging/in-chroot.sh "$work/root" bash -ec '
    . /usr/share/lmod/lmod/init/bash
    export TITIN_HOME=/titin
    before=$PATH
    module use /modulefiles
    module load titin
    titin --version
    pkg-config --modversion titin
    [ -f "$CMAKE_PREFIX_PATH/lib/cmake/titin/titin-config.cmake" ]
    /usr/bin/python3 -c "import titin; print(titin.__file__)"
    module unload titin
    [ "$PATH" = "$before" ] && [ -z "$PYTHONPATH$PKG_CONFIG_PATH$CMAKE_PREFIX_PATH" ]'
echo "try-module: the module file works in Lmod"
