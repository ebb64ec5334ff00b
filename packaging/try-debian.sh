#!/usr/bin/env bash
# Installs the packages of packaging/build-debian.sh in an empty Debian 12, builds programs in C, C++ and Fortran there by
# CMake, pkg-config and `titin config`, couples them, and two in Python, and removes the packages.
#
#   packaging/try-debian.sh
#   SUITES=trixie packaging/try-debian.sh
#
# Needs root (chroot, mount namespaces), the command debootstrap, and a mirror of Debian, which apt's settings name (or
# MIRROR).
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/titin-try-debian.XXXXXX")
trap 'rm -rf "$work"' EXIT

for suite in ${SUITES:-bookworm}; do
    root=$work/$suite
    packaging/empty-system.sh "$root" "$suite" python3,python3-numpy,python3-yaml,gcc,g++,gfortran,cmake,make,pkg-config
    mkdir "$root/packages" "$root/linking"
    cp dist/debian/*.deb "$root/packages"
    packaging/in-chroot.sh "$root" sh -c 'dpkg -i /packages/*.deb' >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

    cp tests/native/exchange.{c,cpp,f90} tests/native/check.{h,hpp} packaging/try-debian/* "$root/linking"
    sed -n '/^```cmake/,/^```/{/^```/!p}' docs/linking.md >"$root/linking/CMakeLists.txt"
    packaging/in-chroot.sh "$root" sh /linking/linking.sh

    cp -r packaging/try-wheel "$root/first-steps"
    packaging/in-chroot.sh "$root" sh -ec 'cd /first-steps
        titin run model.ymmsl --run-dir run >/dev/null
        grep -x "20 numbers, their sum 190.0" result.txt'

    packaging/in-chroot.sh "$root" sh -ec 'dpkg -P python3-titin libtitin-dev titin libtitin0 >/dev/null
        left=$(find /usr -path "*titin*")
        [ -z "$left" ] || { echo "left behind: $left"; exit 1; }'
    rm -rf "$root"
    echo "try-debian: the packages work in an empty $suite"
done
