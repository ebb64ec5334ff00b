#!/usr/bin/env bash
# A laptop and two clusters on this machine, with a long line between them. Needs root.
#
#   clusters.sh up                      starts them
#   clusters.sh at MACHINE COMMAND...   runs a command at one of them: laptop, login.north, n1.north, n2.north, login.south, ...
#   clusters.sh down                    ends them, and all that runs there
#
# Each machine has its own network, host name, processes and shared memory. The laptop has the files of this machine. The
# clusters have its programs, each a home of its own, and an empty folder where `up` was given. A round trip between sites
# takes 20 ms, or ROUND_TRIP. From outside one reaches the ports 22 and 4711 of login.north and the port 22 of login.south,
# and nothing else. The nodes of a cluster reach each other and their login node, which is `login` to them.
set -euo pipefail

script=$(readlink -f "$0")
# World: a folder of this machine, with the number of the process in whose namespaces the machines are. State: a folder
# inside of these namespaces, with the homes, and the number of a process of each machine.
world=${TMPDIR:-/tmp}/titin-clusters
state=/run/clusters
apart=(unshare --mount --uts --ipc --net --pid --fork --kill-child --mount-proc)

die() {
	echo "clusters.sh: $*" >&2
	exit 1
}

# In the namespaces of a process of `unshare`: enter PID OPTION_OR_COMMAND...
enter() {
	exec nsenter --target "$1" --mount --uts --ipc --net --pid="/proc/$1/ns/pid_for_children" "${@:2}"
}

up() {
	[ "$(id -u)" = 0 ] || die "this needs root"
	down
	mkdir -m 700 "$world"
	setsid "${apart[@]}" "$script" all "$world" >"$world/log" 2>&1 </dev/null &
	echo $! >"$world/pid"
	until [ -e "$world/ready" ]; do
		kill -0 $! 2>/dev/null || die "the machines did not start: $(cat "$world/log")"
		sleep 0.1
	done
	echo "A laptop, and two clusters with a login node and the nodes n1 and n2: ${ROUND_TRIP:-20} ms from one to the other."
}

down() {
	[ -e "$world/pid" ] || return 0
	local pid
	pid=$(cat "$world/pid")
	# After a restart of this machine the number may be that of another process.
	while grep -qsaF "$world" "/proc/$pid/cmdline"; do
		kill -9 "$pid"
		sleep 0.1
	done
	rm -rf "$world"
}

at() {
	[ -e "$world/ready" ] || die "the machines are not up: clusters.sh up"
	enter "$(cat "$world/pid")" --wdns="$PWD" "$script" within "$@"
}

within() {
	local machine=$1 folder=$PWD
	local machines
	machines=$(cd $state && echo *.pid)
	[ -e "$state/$machine.pid" ] || die "there is no machine $machine, but ${machines//.pid/}"
	[ "$machine" = laptop ] || folder=$state/${machine#*.}
	enter "$(cat "$state/$machine.pid")" --wdns="$folder" env "HOME=$state/${machine#*.}" "${@:2}"
}

# All that follows runs within the namespaces of `up`.
all() {
	mount -t tmpfs none /run
	mkdir $state
	ssh-keygen -q -t ed25519 -N '' -f $state/host_key
	ssh-keygen -q -t ed25519 -N '' -f $state/user_key
	dropbearconvert openssh dropbear $state/host_key $state/served_key 2>/dev/null
	names

	python3 "${script%/*}/line.py" "${ROUND_TRIP:-20}" laptop=10.72.0.1 login.north=10.72.0.2:22,4711 login.south=10.72.0.3:22 &
	line=$!
	machine laptop
	outside laptop 10.72.0.1
	cluster north 10.72.0.2 10.73.1
	cluster south 10.72.0.3 10.73.2
	for node in {n1,n2}.{north,south}; do
		until "$script" within laptop ssh -o ConnectTimeout=1 $node true 2>/dev/null; do sleep 0.1; done
	done
	touch "$1/ready"
	wait
}

# The files of each site: its names of hosts, and a home with keys.
names() {
	local site
	for site in laptop north south; do
		mkdir -p -m 700 $state/$site $state/$site/.ssh
		cp $state/user_key $state/$site/.ssh/id_ed25519
		cp $state/user_key.pub $state/$site/.ssh/authorized_keys
		echo "* $(cat $state/host_key.pub)" >$state/$site/.ssh/known_hosts
		echo "PATH='$PATH'" >$state/$site/.profile
		sed "s|^root:\(.*\):[^:]*:[^:]*$|root:\1:$state/$site:/bin/sh|" /etc/passwd >$state/$site.passwd
		printf '%s\n' '127.0.0.1 localhost' '10.72.0.2 login.north' '10.72.0.3 login.south' >$state/$site.hosts
	done
	printf '%s\n' '10.73.1.254 login' '10.73.1.1 n1.north' '10.73.1.2 n2.north' >>$state/north.hosts
	printf '%s\n' '10.73.2.254 login' '10.73.2.1 n1.south' '10.73.2.2 n2.south' >>$state/south.hosts
	printf 'Host *.%s !login.%s\n  ProxyJump login.%s\n' north north north south south south >$state/laptop/.ssh/config
}

# A cluster: cluster SITE ADDRESS NETWORK.
cluster() {
	local node switch
	machine "login.$1"
	outside "login.$1" "$2"
	switch=(nsenter --net --target "$(cat "$state/login.$1.pid")" ip)
	"${switch[@]}" link add lan type bridge
	"${switch[@]}" address add "$3.254/24" dev lan
	"${switch[@]}" link set lan up
	for node in 1 2; do
		machine "n$node.$1"
		"${switch[@]}" link add "n$node" type veth peer name lan netns "$(cat "$state/n$node.$1.pid")"
		"${switch[@]}" link set "n$node" master lan up
		"$script" within "n$node.$1" ip address add "$3.$node/24" dev lan
		"$script" within "n$node.$1" ip link set lan up
	done
}

# A machine by itself. It serves ssh; the package of Dropbear, other than that of OpenSSH, starts no server by itself.
machine() {
	"${apart[@]}" "$script" one "$1" "${1#*.}" >"$state/$1.log" 2>&1 &
	echo $! >"$state/$1.pid"
	until [ -e "$state/$1.up" ]; do
		kill -0 $! 2>/dev/null || die "$1 did not start: $(cat "$state/$1.log")"
		sleep 0.05
	done
}

one() {
	mount -t tmpfs none /dev/shm
	mount --bind "$state/$2.hosts" /etc/hosts
	mount --bind "$state/$2.passwd" /etc/passwd
	[ "$1" = laptop ] || mount -t tmpfs none "$PWD"
	hostname "$1"
	ip link set lo up
	touch "$state/$1.up"
	exec env "HOME=$state/$2" dropbear -F -E -e -s -p 22 -r $state/served_key
}

# Gives a machine its end of the line: outside MACHINE ADDRESS.
outside() {
	until ip link set "to-$1" netns "$(cat "$state/$1.pid")" name wan 2>/dev/null; do
		kill -0 "$line" 2>/dev/null || die "the line did not start"
		sleep 0.05
	done
	"$script" within "$1" ip address add "$2/24" dev wan
	"$script" within "$1" ip link set wan up
}

case ${1-} in
up | down | at | all | within | one) "$@" ;;
*) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$script" ;;
esac
