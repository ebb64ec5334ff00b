#!/bin/sh
# Builds the canal, runs it whole and as two coupled sections, on a rank each, on several, and with what crosses the seam gathered
# at their first ranks; compares the four and draws the flow. MPI=mpich ./run.sh takes another MPI; further files of description
# may follow.
set -eu
cd "$(dirname "$0")"
MPI=${MPI:-openmpi}
make -s MPI="$MPI"
run() {
    name=$1
    shift
    rm -rf "build/$name"
    titin run "$@" --run-dir "build/$name"
}
run whole whole.ymmsl canal.ymmsl "$MPI.ymmsl" "$@"
run two two.ymmsl canal.ymmsl "$MPI.ymmsl" "$@"
run spread two.ymmsl canal.ymmsl "$MPI.ymmsl" spread.ymmsl "$@"
run gathered two.ymmsl canal.ymmsl "$MPI.ymmsl" spread.ymmsl gathered.ymmsl "$@"
python3 plot.py build/whole build/two build/spread build/gathered -o build/canal.svg
