#!/bin/sh
# Builds the Lorenz program, runs it with a learner in the place of its fine scale, with the fine scale to the end, and without any;
# prints the climates and draws them. MPI=mpich ./run.sh takes another MPI; further files of description may follow.
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
run computed emulator.ymmsl alone.ymmsl "$MPI.ymmsl" "$@"
run nothing emulator.ymmsl alone.ymmsl "$MPI.ymmsl" nothing.ymmsl "$@"
run learned emulator.ymmsl coupled.ymmsl "$MPI.ymmsl" "$@"
python3 plot.py build/computed build/learned build/nothing -o build/emulator.svg
