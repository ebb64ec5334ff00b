#!/usr/bin/env bash
# Builds the Debian packages titin, libtitin0, libtitin-dev and python3-titin into dist/debian, and has lintian judge them.
#
#   packaging/build-debian.sh
#
# On Debian 12 or newer, with the packages of Build-Depends in packaging/debian/control, lintian, and Rust from
# rustup. Needs no root, an index of Python packages and one of crates. DEB_BUILD_OPTIONS=noopt builds for development,
# in less time; CARGO_TARGET_DIR may name a folder that has what was built before.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
out=$PWD/dist/debian
work=$(mktemp -d "${TMPDIR:-/tmp}/titin-debian.XXXXXX")
trap 'rm -rf "$work"' EXIT

tree=$work/titin-$version
mkdir "$tree"
git ls-files -co --exclude-standard -z | tar -c --null --no-recursion -T - | tar -x -C "$tree"
cp -r packaging/debian "$tree/debian"
(cd "$tree" && dpkg-buildpackage --build=binary --no-sign)
lintian --fail-on error,warning --display-info --tag-display-limit 0 "$work"/titin_*.changes
rm -rf "$out"
mkdir -p "$out"
mv "$work"/*.deb "$out"
ls -l "$out"
