#!/usr/bin/env bash
# Runs a command on the first of several hosts of its own: hosts.sh COUNT COMMAND ARGUMENT...
#
# The hosts are named n1, n2, ... and have this machine's files in common, but each has its own network, host name, processes
# and /dev/shm. Each but the first serves ssh, and the first may log in. Where HIDDEN names a folder, only the first host has
# what is in it. Where SECOND is set, the hosts have a second network in common: 10.71.0.0/24, by the interface eth1, and
# `second` on the first host. All of it lives in namespaces that end with this script, so nothing is left. Needs root.
set -euo pipefail

apart=(unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc)
if [ "$1" != inside ]; then exec "${apart[@]}" --net "$0" inside "$@"; fi
count=$2
shift 2

state=/run/hosts
mount -t tmpfs none /run
mkdir -p $state/home/.ssh
mount -t tmpfs none /dev/shm
hostname n1

# Root has a home of its own, with the keys. Dropbear serves, since its package starts no server on the machine.
sed "s|^root:\(.*\):[^:]*:[^:]*$|root:\1:$state/home:/bin/sh|" /etc/passwd >$state/passwd
mount --bind $state/passwd /etc/passwd
ssh-keygen -q -t ed25519 -N '' -f $state/host_key
ssh-keygen -q -t ed25519 -N '' -f $state/home/.ssh/id_ed25519
cp $state/home/.ssh/id_ed25519.pub $state/home/.ssh/authorized_keys
chmod -R go= $state/home
dropbearconvert openssh dropbear $state/host_key $state/served_key 2>/dev/null

echo '127.0.0.1 localhost' >$state/hosts
ip link set lo up
ip link add lan type bridge
ip address add 10.70.0.1/24 dev lan
ip link set lan up
if [ -n "${SECOND-}" ]; then
	ip link add second type bridge
	ip address add 10.71.0.1/24 dev second
	ip link set second up
fi
for number in $(seq "$count"); do
	echo "10.70.0.$number n$number" >>$state/hosts
	echo "n$number,10.70.0.$number $(cat $state/host_key.pub)" >>$state/home/.ssh/known_hosts
done
mount --bind $state/hosts /etc/hosts

serve='mount -t tmpfs none /dev/shm; [ -z "${HIDDEN-}" ] || mount -t tmpfs none "$HIDDEN"; hostname $1
	exec dropbear -F -E -s -p 22 -P "$2/$1.pid" -r "$2/served_key"'
for number in $(seq 2 "$count"); do
	ip netns add "n$number"
	ip link add "to-n$number" type veth peer name eth0 netns "n$number"
	ip link set "to-n$number" master lan up
	ip -n "n$number" address add "10.70.0.$number/24" dev eth0
	ip -n "n$number" link set lo up
	ip -n "n$number" link set eth0 up
	if [ -n "${SECOND-}" ]; then
		ip link add "second-n$number" type veth peer name eth1 netns "n$number"
		ip link set "second-n$number" master second up
		ip -n "n$number" address add "10.71.0.$number/24" dev eth1
		ip -n "n$number" link set eth1 up
	fi
	nsenter --net="/run/netns/n$number" "${apart[@]}" sh -c "$serve" sh "n$number" $state 2>"$state/n$number.log" &
done
for number in $(seq 2 "$count"); do
	until ssh -o ConnectTimeout=1 "n$number" true 2>/dev/null; do sleep 0.05; done
done
exec "$@"
