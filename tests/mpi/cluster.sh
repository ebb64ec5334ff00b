#!/usr/bin/env bash
# Runs a command on the first node of a Slurm cluster of two nodes: cluster.sh COMMAND ARGUMENT... All nodes are allocated for it,
# unless UNALLOCATED is set.
set -euo pipefail

allocated=(salloc --quiet --nodes 2 --ntasks 12)
[ -z "${UNALLOCATED-}" ] || allocated=()
exec "$(dirname "$0")/../sites/cluster.sh" 2 "${allocated[@]}" "$@"
