#!/usr/bin/env bash
# Changes the code in small ways, one at a time, and lists the changes that no test notices (docs/mutants.md).
#
# MUTANTS=3/16 takes the fourth of 16 samples (they count from 0) of the Rust code; without it each change is made, which takes
# many hours. Python's changes are all made. What was found is in build/mutants.
set -euo pipefail
cd "$(dirname "$0")/.."
found=$PWD/build/mutants

cargo mutants --version >/dev/null 2>&1 || cargo install --locked cargo-mutants@27.1.0
python tools/mutants.py --sample "${MUTANTS:-0/1}"

# mutmut changes a copy, and imports it in place of the installed package; the programs that tests start do so too.
python -m pip install -q --disable-pip-version-check mutmut==3.8.1
work=$found/python
# The folder of changed modules must be there before Python starts, or it is taken for one that never has any.
mkdir -p "$work/site" "$work/mutants"
cp -r "$(python -c 'import pathlib, titin; print(pathlib.Path(titin.__file__).parent)')" tests pyproject.toml "$work"
cp -r bindings/python/titin/. "$work/titin"
cd "$work"
# Which tests come by a function, mutmut notes in each process that calls it. It looks for its settings where that runs, and fails
# in the programs of tests, which run elsewhere.
cat >site/sitecustomize.py <<END
import os
from mutmut import configuration
here = os.getcwd()
os.chdir("$work")
configuration.config()
os.chdir(here)
END
PYTHONPATH=$work/mutants:$work/site mutmut run
mutmut results
