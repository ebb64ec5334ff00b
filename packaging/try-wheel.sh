#!/usr/bin/env bash
# Installs the wheel of `make wheel` with pip in an empty Debian 12 and an empty Debian 13, which have Python and nothing
# else, and runs there what a user runs first.
#
#   packaging/try-wheel.sh [WHEEL]        takes minutes
#   SUITES=trixie packaging/try-wheel.sh  in one of the two
#
# Needs root (chroot, mount namespaces), the command debootstrap, a mirror of Debian, which apt's settings name (or
# MIRROR), and an index of Python packages. Nothing in the chroot uses the network.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/titin-try-wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT

for suite in ${SUITES:-bookworm trixie}; do
    root=$work/$suite
    packaging/empty-system.sh "$root" "$suite" python3,python3-venv
    if chroot "$root" sh -c 'command -v cc || command -v make || command -v cargo'; then
        echo "try-wheel: $suite is not empty, so this would prove nothing" >&2
        exit 1
    fi
    packaging/install-wheel.sh "$root" "$@"
    mkdir "$root/first-steps"
    cp packaging/try-wheel/* "$root/first-steps"
    packaging/in-chroot.sh "$root" sh /first-steps/first-steps.sh
    rm -rf "$root"
    echo "try-wheel: the wheel works in an empty $suite"
done
