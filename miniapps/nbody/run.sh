#!/bin/sh
# Builds the code, runs it whole, as two programs and as three that are joined by paths; compares the three to the bit and draws
# the density. MPI=mpich ./run.sh takes another MPI; options of the program may follow.
set -eu
cd "$(dirname "$0")"
MPI=${MPI:-openmpi}
PORT=${PORT:-4760}
make -s -j2 MPI="$MPI"
nbody=build/$MPI/nbody
[ -e build/key ] || titin path key build/key >/dev/null
# A part whose neighbour has failed is not to wait for it.
trap 'kill $(jobs -p) 2>/dev/null || :' EXIT
part() {
    parts=$1 part=$2
    shift 2
    "$nbody" --parts "$parts" --part "$part" --key build/key --out "build/$parts-$part.npy" \
        --steps-file "build/$parts-$part.csv" "$@"
}
at() { echo "127.0.0.1:$((PORT + $1))"; }

"$nbody" --out build/whole.npy "$@"

part 2 0 --listen "$(at 0)" "$@" & first=$!
part 2 1 --open "$(at 0)" "$@"
wait $first

part 3 0 --listen "$(at 1)" --open "$(at 2)" "$@" & first=$!
part 3 1 --listen "$(at 2)" --open "$(at 3)" "$@" & second=$!
part 3 2 --listen "$(at 3)" --open "$(at 1)" "$@"
wait $first
wait $second

python3 plot.py build/whole.npy build/2-1.npy build/3-2.npy --steps build/2-0.csv -o build/nbody.svg
