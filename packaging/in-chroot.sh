#!/usr/bin/env bash
# Runs a command as root in a chroot that has /proc, /dev/shm and no network: `in-chroot.sh ROOT COMMAND...`. What is
# mounted for it goes with it.
set -euo pipefail
root=$1
shift
# The loopback interface is up, as on every machine.
exec unshare --mount --pid --net --fork --kill-child sh -euc '
    root=$1
    shift
    ip link set lo up 2>/dev/null || true
    mount -t proc proc "$root/proc"
    for name in null zero full random urandom tty; do
        [ -e "$root/dev/$name" ] || : >"$root/dev/$name"
        mount --bind "/dev/$name" "$root/dev/$name"
    done
    mkdir -p "$root/dev/shm"
    mount -t tmpfs tmpfs "$root/dev/shm"
    exec chroot "$root" env -i HOME=/root PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin LANG=C.UTF-8 "$@"
' sh "$root" "$@"
