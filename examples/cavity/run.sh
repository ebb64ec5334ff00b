#!/bin/sh
# Builds the cavity, runs it whole and as two and four coupled blocks, compares the three and draws the last.
set -eu
cd "$(dirname "$0")"
make -s build/cavity
for division in whole two four; do
    rm -rf "build/$division"
    titin run "$division.ymmsl" cavity.ymmsl "$@" --run-dir "build/$division"
done
python3 plot.py build/whole build/two build/four -o build/cavity.svg
