#!/usr/bin/env bash
# Runs a command on the first node of a Slurm cluster of its own: cluster.sh COUNT COMMAND ARGUMENT...
# The command has CLUSTER_SECONDS, or 240 s.
#
# The nodes are named n1, n2, ... and have 6 cores each by Slurm's count. They have this machine's files in common and nothing else:
# each has its own network, host name, processes and /dev/shm. Nothing is allocated. All of it lives in namespaces that end with
# this script, so nothing is left. One cluster runs at a time, since launchers give up on slow hosts.
# Needs root.
set -euo pipefail

apart=(unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc)
if [ "$1" != inside ]; then exec flock --no-fork "$0" "${apart[@]}" --net "$0" inside "$@"; fi
count=$2
shift 2

state=/run/cluster
mount -t tmpfs none /run
mkdir $state $state/tmp
export SLURM_CONF=$state/slurm.conf TMPDIR=$state/tmp

# UCX looks for networks in /sys, and Slurm for control groups.
own='mount -t tmpfs none /dev/shm; mount --rbind /sys/fs/cgroup /run/groups; mount -t sysfs none /sys; mount --rbind /run/groups /sys/fs/cgroup'
mkdir /run/groups
eval "$own"
hostname n1

# A switch, which is on this host. This one is n1.
echo '127.0.0.1 localhost' >$state/hosts
for number in $(seq "$count"); do echo "10.70.0.$number n$number" >>$state/hosts; done
mount --bind $state/hosts /etc/hosts
ip link set lo up
ip link add eth0 type bridge
ip address add 10.70.0.1/24 dev eth0
ip link set eth0 up
for number in $(seq 2 "$count"); do
	ip netns add "n$number"
	ip link add "to-n$number" type veth peer name eth0 netns "n$number"
	ip link set "to-n$number" master eth0 up
	ip -n "n$number" address add "10.70.0.$number/24" dev eth0
	ip -n "n$number" link set lo up
	ip -n "n$number" link set eth0 up
done

# Only the backfill scheduler starts heterogeneous jobs. It looks at the queue every second.
cat >$SLURM_CONF <<END
ClusterName=several
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
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=100000
KillWait=2
StateSaveLocation=$state/saved
SlurmctldPidFile=$state/slurmctld.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdPidFile=$state/slurmd-%n.pid
SlurmdLogFile=$state/slurmd-%n.log
SlurmdSpoolDir=$state/spool-%n
NodeName=n[1-$count] CPUs=6 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES
END
mkdir $state/saved
for number in $(seq "$count"); do
	mkdir -p "$state/n$number/pmix"
	ln -s ../slurm.conf "$state/n$number"
	# By another kind of fence some ranks go on before all have come, and Open MPI is sent what it cannot take yet (Slurm 22.05).
	printf '%s\n' "PMIxCliTmpDirBase=$state/n$number/pmix" PMIxCollFence=ring >"$state/n$number/mpi.conf"
done

head -c 128 /dev/urandom >$state/munge.key
chmod 600 $state/munge.key
munged --force --key-file=$state/munge.key --socket=$state/munge.sock --pid-file=$state/munged.pid \
	--log-file=$state/munged.log --seed-file=$state/munged.seed
slurmctld -c
slurmd -N n1 -f $state/n1/slurm.conf
others=()
for number in $(seq 2 "$count"); do
	nsenter --net="/run/netns/n$number" "${apart[@]}" sh -c \
		"$own; hostname n$number; exec slurmd -D -N n$number -f $state/n$number/slurm.conf" 2>"$state/n$number.log" &
	others+=($!)
done
until [ "$(sinfo -h -t idle -o %D)" = "$count" ]; do
	if ! kill -0 "${others[@]}" "$(cat $state/slurmctld.pid)" "$(cat $state/slurmd-n1.pid)"; then
		tail -n 20 $state/*.log >&2
		exit 1
	fi
	sleep 0.1
done

# A command that hangs is ended before the test's own time is over, so that the test shows what hung.
code=0
timeout --kill-after=10 "${CLUSTER_SECONDS:-240}" "$@" || code=$?
if [ $code -ge 124 ]; then
	squeue --noheader --format='%i %T %N %r' >&2
	ps -eo pid,ppid,etimes,stat,wchan:20,args >&2
	tail -n 40 $state/*.log >&2
fi
exit $code
