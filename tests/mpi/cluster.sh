#!/usr/bin/env bash
# Runs a command on the first node of a Slurm cluster of its own: cluster.sh COMMAND ARGUMENT... All nodes are allocated for it, unless
# UNALLOCATED is set.
#
# Its two nodes, of 6 cores each by Slurm's count, have this machine's files in common and nothing else: each has its own network,
# host name, processes and /dev/shm. All of it lives in namespaces that end with this script, so nothing is left. One runs at a time:
# launchers give up on slow hosts. Needs root.
set -euo pipefail

apart=(unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc)
if [ "$1" != inside ]; then exec flock --no-fork "$0" "${apart[@]}" --net "$0" inside "$@"; fi
shift

state=/run/cluster
mount -t tmpfs none /run
mkdir $state $state/tmp
export SLURM_CONF=$state/slurm.conf TMPDIR=$state/tmp

# One cable between two hosts; this one is n1.
printf '127.0.0.1 localhost\n10.70.0.1 n1\n10.70.0.2 n2\n' >$state/hosts
mount --bind $state/hosts /etc/hosts
# UCX looks for networks in /sys, and Slurm for control groups.
own='mount -t tmpfs none /dev/shm; mount --rbind /sys/fs/cgroup /run/groups; mount -t sysfs none /sys; mount --rbind /run/groups /sys/fs/cgroup'
mkdir /run/groups
eval "$own"
hostname n1
ip netns add n2
ip link add eth0 type veth peer name eth0 netns n2
ip address add 10.70.0.1/24 dev eth0
ip -n n2 address add 10.70.0.2/24 dev eth0
for net in "ip" "ip -n n2"; do
	$net link set lo up
	$net link set eth0 up
done

cat >$SLURM_CONF <<END
ClusterName=two
SlurmctldHost=n1
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$state/munge.sock
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=100000
KillWait=2
StateSaveLocation=$state/saved
SlurmctldPidFile=$state/slurmctld.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdPidFile=$state/slurmd-%n.pid
SlurmdLogFile=$state/slurmd-%n.log
SlurmdSpoolDir=$state/spool-%n
NodeName=n[1-2] CPUs=6 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES
END
mkdir $state/saved
for node in n1 n2; do
	mkdir -p $state/$node/pmix
	ln -s ../slurm.conf $state/$node
	# By another kind of fence some ranks go on before all have come, and Open MPI is sent what it cannot take yet (Slurm 22.05).
	printf '%s\n' "PMIxCliTmpDirBase=$state/$node/pmix" PMIxCollFence=ring >$state/$node/mpi.conf
done

head -c 128 /dev/urandom >$state/munge.key
chmod 600 $state/munge.key
munged --force --key-file=$state/munge.key --socket=$state/munge.sock --pid-file=$state/munged.pid \
	--log-file=$state/munged.log --seed-file=$state/munged.seed
slurmctld -c
slurmd -N n1 -f $state/n1/slurm.conf
nsenter --net=/run/netns/n2 "${apart[@]}" sh -c \
	"$own; hostname n2; exec slurmd -D -N n2 -f $state/n2/slurm.conf" 2>$state/n2.log &

second=$!
until [ "$(sinfo -h -t idle -o %D)" = 2 ]; do
	if ! kill -0 $second "$(cat $state/slurmctld.pid)" "$(cat $state/slurmd-n1.pid)"; then
		tail -n 20 $state/*.log >&2
		exit 1
	fi
	sleep 0.1
done
[ -z "${UNALLOCATED-}" ] || exec "$@"
exec salloc --quiet --nodes 2 --ntasks 12 "$@"
