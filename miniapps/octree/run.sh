#!/bin/sh
# Builds both programs, LB with Open MPI and POST_DATA with MPICH, and POST_DATA without MPI too; runs them with a flow that swings,
# pushed and pulled, on several ranks; compares the statistics of all to the bit; compares steady flows on two meshes with the exact
# one; and draws the flow. MPI=openmpi ./run.sh takes Open MPI for both. Files of description that change the swinging flow may follow.
set -eu
cd "$(dirname "$0")"
MPI=${MPI:-mixed}
make -s MPI=openmpi
[ "$MPI" = openmpi ] || make -s MPI=mpich
make -s serial
run() {
    name=$1
    shift
    rm -rf "build/$name"
    titin run "$@" --run-dir "build/$name"
}
run pushed checked.ymmsl octree.ymmsl "$MPI.ymmsl" "$@"
run pulled checked.ymmsl octree.ymmsl serial.ymmsl pulled.ymmsl "$@"
run coarse type_a.ymmsl octree.ymmsl "$MPI.ymmsl" steady.ymmsl
run fine type_a.ymmsl octree.ymmsl "$MPI.ymmsl" steady.ymmsl finer.ymmsl
python3 plot.py build/pushed build/pulled --steady build/coarse build/fine -o build/octree.svg
