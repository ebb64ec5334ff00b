#!/usr/bin/env bash
# Installs a wheel with pip in the folder /titin of a chroot that has Python: `install-wheel.sh ROOT [WHEEL]`. pip takes
# numpy and PyYAML from its index before, so that the chroot needs no network.
set -euo pipefail
root=$1
cd "$(dirname "$0")/.."
wheel=${2:-$(ls -t dist/titin-[0-9]*_"$(uname -m)".whl | head -n 1)}

mkdir -p "$root/wheels"
cp "$wheel" "$root/wheels"
python=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
python3 -m pip download -q --disable-pip-version-check --only-binary :all: --python-version "$python" \
    --platform "manylinux_2_28_$(uname -m)" --platform "manylinux_2_17_$(uname -m)" --dest "$root/wheels" 'numpy>=1.24' 'PyYAML>=6'
packaging/in-chroot.sh "$root" sh -ec 'python3 -m venv /titin
    /titin/bin/pip install -q --disable-pip-version-check --no-index --find-links /wheels titin'
echo "$(basename "$wheel"), Python $python"
