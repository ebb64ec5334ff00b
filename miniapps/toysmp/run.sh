#!/bin/sh
# Builds the three components, runs them with 1, 2, 4 and 8 ranks each, the fields separate and aggregated, and draws what it took.
# MPI=mpich ./run.sh takes another MPI, RANKS="1 3" other numbers of ranks; further files of description may follow.
set -eu
cd "$(dirname "$0")"
MPI=${MPI:-openmpi}
make -s MPI="$MPI"
runs=
for ranks in ${RANKS:-1 2 4 8}; do
    cat >build/ranks.ymmsl <<END
ymmsl_version: v0.2
resources:
  toysmp.a: {mpi_processes: $ranks}
  toysmp.b: {mpi_processes: $ranks}
  toysmp.c: {mpi_processes: $ranks}
END
    for way in separate aggregated; do
        rm -rf "build/$way-$ranks"
        titin run "$way.ymmsl" toysmp.ymmsl "$MPI.ymmsl" build/ranks.ymmsl "$@" --run-dir "build/$way-$ranks"
        runs="$runs build/$way-$ranks"
    done
done
python3 plot.py $runs -o build/toysmp.svg
