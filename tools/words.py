#!/usr/bin/env python3
"""Fails on words that do not belong in the tree: unfinished work, somebody's paths, names against the house style."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

RULES = [
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "unfinished work: finish it, or leave it out"),
    (re.compile(r"(?<![\w.~}])/(home|root|work|Users)/\w"), "a path of somebody's machine"),
    (
        re.compile(r"\b(fn|def|function|subroutine) get_\w"),
        "no get_ in names: name the thing",
    ),
    (re.compile(r"^(<<<<<<<|>>>>>>>) "), "a merge that was not finished"),
]

#: Where the interfaces of other libraries give the names: those of MUSCLE3 and MUSCLE 2, and the Basic Model Interface.
GIVEN = re.compile(
    r"(compat|tests/(adoption|bmi)|bindings/python/titin/bmi)/|docs/(muscle[23]|bmi)\.md|benchmarks/programs/bmi_"
)

BINARY = {".npy", ".png", ".svg", ".lock"}


def main() -> int:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    found = 0
    for name in files.decode().split("\0"):
        path = ROOT / name
        if not name or path.suffix in BINARY or path == Path(__file__).resolve() or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
            for pattern, reason in RULES:
                if pattern.search(line) and not ("get_" in reason and GIVEN.match(name)):
                    print(f"{name}:{number}: {reason}: {line.strip()}", file=sys.stderr)
                    found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
