#!/usr/bin/env python3
"""Fails on a dependency whose licence is not on the list, or that docs/dependencies.md does not explain."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Licences with terms that go with Apache-2.0. A licence is added here by hand, after reading it.
ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}


def allows(expression: str) -> bool:
    """Whether the list fulfils an SPDX expression: OR needs one side, AND both sides."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def either() -> bool:
        nonlocal position
        found = both()
        while position < len(tokens) and tokens[position] == "OR":
            position += 1
            found |= both()
        return found

    def both() -> bool:
        nonlocal position
        found = one()
        while position < len(tokens) and tokens[position] == "AND":
            position += 1
            found &= one()
        return found

    def one() -> bool:
        nonlocal position
        if tokens[position] == "(":
            position += 1
            found = either()
            position += 1
            return found
        name = tokens[position]
        position += 1
        if position < len(tokens) and tokens[position] == "WITH":
            name = f"{name} WITH {tokens[position + 1]}"
            position += 2
        return name in ALLOWED

    return either()


def python_packages() -> set[str]:
    """The Python packages named in the requirements and in the package's own metadata."""
    lines = [
        line
        for name in ("build", "dev", "test", "docs")
        for line in (ROOT / f"requirements-{name}.txt").read_text().splitlines()
    ]
    needed = tomllib.loads((ROOT / "bindings/python/pyproject.toml").read_text())["project"]["dependencies"]
    return {re.split("[=<>~! ;[]", line)[0] for line in [*lines, *needed] if line and line[0] not in "#-"}


def main() -> int:
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    ours = set(metadata["workspace_members"])
    problems = []
    for package in metadata["packages"]:
        licence = package["license"] or ""
        if package["id"] not in ours and not (licence and allows(licence)):
            problems.append(
                f"{package['name']} {package['version']}: licence {licence or 'not stated'!r} is not allowed; "
                "choose another crate, or read the licence and add it to tools/licences.py"
            )
    explained = (ROOT / "docs/dependencies.md").read_text()
    named = {
        dependency["name"]
        for package in metadata["packages"]
        if package["id"] in ours
        for dependency in package["dependencies"]
        if not dependency.get("path")
    }
    for name in sorted(named | python_packages()):
        if f"`{name}`" not in explained:
            problems.append(f"{name}: docs/dependencies.md has no line that says what it is for")
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"licences: {len(metadata['packages']) - len(ours)} crates, all allowed and explained")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
