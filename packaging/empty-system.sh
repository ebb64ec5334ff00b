#!/usr/bin/env bash
# Makes a Debian with the packages that are named and no others: `empty-system.sh ROOT SUITE PACKAGE,PACKAGE,...`. SYSTEMS
# may name a folder in which each is kept, for the next time.
set -euo pipefail
root=$1 suite=$2 packages=$3
name=packaging/empty-system.sh

[ "$(id -u)" = 0 ] || { echo "$name: a chroot needs root; run this as root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "$name: debootstrap is missing; apt-get install debootstrap" >&2; exit 1; }
kept=${SYSTEMS:+$SYSTEMS/$suite-$(md5sum <<<"$packages" | head -c 8).tar}
if [ -n "$kept" ] && [ -f "$kept" ]; then
    mkdir -p "$root"
    exec tar -xf "$kept" -C "$root"
fi
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' | head -n 1)}
log=$(debootstrap --variant=minbase --include="$packages" "$suite" "$root" "${mirror:-http://deb.debian.org/debian}" 2>&1) ||
    { tail -n 20 <<<"$log" >&2; exit 1; }
rm -rf "$root"/var/cache/apt "$root"/var/lib/apt/lists
[ -z "$kept" ] || { tar -cf "$kept.new" -C "$root" . && mv "$kept.new" "$kept"; }
