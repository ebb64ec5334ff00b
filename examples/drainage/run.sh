#!/bin/sh
# Runs the network whole and split in two, compares what reaches the river and draws both.
# Needs `pip install swmm-toolkit matplotlib`.
set -eu
cd "$(dirname "$0")"
for model in whole split; do
    rm -rf "build/$model"
    titin run "$model.ymmsl" drainage.ymmsl "$@" --run-dir "build/$model"
done
python3 plot.py build/whole build/split -o build/drainage.svg
