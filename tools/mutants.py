"""Changes the Rust code in small ways, all in one build, and lists the changes that no test notices (docs/mutants.md).

`cargo mutants` lists the possible changes, but would build anew for each. Here a changed function gets all of its
changed bodies beside its own body, and the variable TITIN_MUTANT chooses a body when a program runs. So a change takes
as long as the tests alone, and tests in Python can be used, too.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOUND = ROOT / "build/mutants"
TREE = FOUND / "tree"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
PYTHON = TREE / ".venv/bin/python"

#: For each part: its files, its crate, and tests in Python that also notice changes of the part.
PARTS = {
    "element": ("crates/element/src/*", "element", []),
    "array": ("crates/array/src/*", "array", []),
    "model": ("crates/model/src/*", "model", []),
    "draw": ("crates/draw/src/*", "draw", []),
    "components": ("crates/components/src/*", "components", ["tests/components"]),
    "filter": (
        "crates/runtime/src/filter.rs",
        "runtime",
        ["tests/python/test_filters.py", "tests/python/test_choosing.py"],
    ),
}
CRATES = sorted({crate for _, crate, _ in PARTS.values()})

#: Seconds of processor time and of the clock for the tests of a change. Tests that take longer have noticed the change.
#: Waiting takes no processor time, and a machine may be busy.
PROCESSOR, CLOCK = 60, 180

CHOICE = """
#[doc(hidden)]
pub fn __mutant() -> u32 {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("TITIN_MUTANT").map_or(0, |number| number.parse().expect("a number")))
}
"""

Change = dict[str, Any]
#: For each file, where the changed bodies are: the first and the last line, and the number of the change.
Lines = dict[str, list[tuple[int, int, int]]]
#: A command that runs tests, and its folder.
Command = tuple[list[str], Path]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", default="0/1", help="3/16 is the fourth of 16 samples; for parts that name none")
    parser.add_argument(
        "parts", nargs="*", default=list(PARTS), help=f"{', '.join(PARTS)}; or one with a sample, model=3/16"
    )
    options = parser.parse_args()
    samples = {name: sample or options.sample for name, _, sample in (part.partition("=") for part in options.parts)}
    copy_tree()
    changes = chosen(samples)
    weave_what_compiles(changes)
    binaries = built()
    if any(PARTS[part][2] for part in samples):
        install()
    for part in samples:
        try_all(part, [change for change in changes if change["part"] == part], binaries)


def copy_tree() -> None:
    """Copies the tree. Unchanged files keep their times, so that cargo builds only changed files."""
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    for file in files:
        (TREE / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, TREE / file)


def chosen(samples: dict[str, str]) -> list[Change]:
    """The changes to try, numbered from 1."""
    packages = [f"--package=titin-{crate}" for crate in CRATES]
    command = ["cargo", "mutants", "--list", "--json", *packages]
    known = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    changes: list[Change] = []
    for part, sample in samples.items():
        first, step = map(int, sample.split("/"))
        of_part = [change for change in known if fnmatch.fnmatch(change["file"], PARTS[part][0])]
        print(f"{part}: {len(of_part)} changes, sample {sample}", flush=True)
        changes += [change | {"part": part} for change in of_part[first::step]]
    for number, change in enumerate(changes, start=1):
        change["number"] = number
    return changes


def environment(number: int = 0) -> dict[str, str]:
    path = os.pathsep.join([str(PYTHON.parent), os.environ["PATH"]])
    own = {"TITIN_MUTANT": str(number), "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1", "PATH": path}
    return {**os.environ, **own, "CARGO_TARGET_DIR": str(TARGET)}


def weave_what_compiles(changes: list[Change]) -> None:
    """Puts all changes into the copy of the tree, except those that do not compile."""
    command = ["cargo", "check", "--workspace", "--locked", "--lib", "--keep-going", "--message-format=json"]
    while True:
        lines = weave(changes)
        done = subprocess.run(command, cwd=TREE, env=environment(), stdout=subprocess.PIPE, text=True)
        if done.returncode == 0:
            return
        found: set[int] = set()
        for line in done.stdout.splitlines():
            message = json.loads(line).get("message", {})
            if message.get("level") == "error":
                found |= numbers(message["spans"], lines)
        if not found:
            sys.exit("the tree does not compile, for another reason than one of the changes")
        for change in changes:
            if change["number"] in found:
                change["left out"] = "does not compile"


def numbers(spans: list[Any], lines: Lines) -> set[int]:
    """The numbers of the changes in which an error of the compiler is."""
    found = set()
    for span in spans:
        for first, last, number in lines[span["file_name"]]:
            if first <= span["line_start"] <= last:
                found.add(number)
        if span["expansion"]:
            found |= numbers([span["expansion"]["span"]], lines)
    return found


def weave(changes: list[Change]) -> Lines:
    """Writes the sources with all changes that are not left out. Returns the places of the changes."""
    lines: Lines = defaultdict(list)
    by_file: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        by_file[change["file"]].append(change)
    for crate in CRATES:
        by_file.setdefault(f"crates/{crate}/src/lib.rs", [])
    for file, of_file in by_file.items():
        text = woven((ROOT / file).read_text(), of_file, lines[file])
        if file.endswith("/src/lib.rs"):
            # The text goes into the first line, so that the other lines keep their numbers.
            text = f"#![allow(warnings)] {text}{CHOICE}"
        (TREE / file).write_text(text)
    return lines


def woven(text: str, changes: list[Change], lines: list[tuple[int, int, int]]) -> str:
    """A source with all changed bodies of its functions. The places of the bodies are added to `lines`."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def range_of(span: Any) -> tuple[int, int]:
        begin, end = ((starts[at["line"] - 1] + at["column"] - 1) for at in (span["start"], span["end"]))
        return begin, end

    functions = {range_of(change["function"]["span"]) for change in changes if change["function"]}
    by_function: dict[tuple[int, int], list[Change]] = defaultdict(list)
    for change in changes:
        if "left out" in change:
            continue
        if not change["function"]:
            change["left out"] = "of no function"
            continue
        begin, end = range_of(change["function"]["span"])
        # A function inside another function is changed with the outer one.
        outermost = min((b, -e) for b, e in functions if b <= begin and end <= e)
        by_function[outermost[0], -outermost[1]].append(change)
    out, done, at_line = [], 0, 1

    def put(piece: str) -> None:
        nonlocal at_line
        out.append(piece)
        at_line += piece.count("\n")

    for (begin, end), group in sorted(by_function.items()):
        opening = opening_of(text, begin)
        closing = text.rindex("}", opening, end) + 1
        if re.search(r"\bconst\s+(unsafe\s+)?fn\b", re.sub("//.*", "", text[begin:opening])):
            for change in group:
                change["left out"] = "of a constant function"
            continue
        put(text[done:opening])
        own = "|".join(str(change["number"]) for change in group)
        put(f"{{ match crate::__mutant() {{ n if !matches!(n, {own}) => {text[opening:closing]}\n")
        for change in group:
            first, last = range_of(change["span"])
            top = at_line
            put(f"{change['number']} => {text[opening:first]}{change['replacement']}{text[last:closing]}\n")
            lines.append((top, at_line - 1, change["number"]))
        put("_ => unreachable!() } }")
        done = closing
    put(text[done:])
    return "".join(out)


def opening_of(text: str, at: int) -> int:
    """The position of the body of the function that begins at `at`."""
    depth = 0
    while not (text[at] == "{" and depth == 0):
        if text.startswith("//", at):
            at = text.index("\n", at)
        elif text[at] == '"':
            at = text.index('"', at + 1)
        depth += (text[at] in "([") - (text[at] in ")]")
        at += 1
    return at


def built() -> list[tuple[str, Command]]:
    """The programs of tests, each with its crate."""
    # Built from the whole workspace: for some packages alone, cargo would build other variants of their dependencies.
    command = ["cargo", "test", "--workspace", "--locked", "--lib", "--tests", "--no-run", "--message-format=json"]
    done = subprocess.run(command, cwd=TREE, env=environment(), stdout=subprocess.PIPE, check=True, text=True)
    found: list[tuple[str, Command]] = []
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["profile"]["test"]:
            folder = Path(message["manifest_path"]).parent
            found.append((folder.name, ([message["executable"], "--quiet"], folder)))
    return found


def install() -> None:
    """Installs the package with all changes in an environment of its own. Other packages come from this Python's
    environment."""
    venv.create(TREE / ".venv", with_pip=True)
    library = "lib/python{}.{}/site-packages".format(*sys.version_info)
    (TREE / ".venv" / library / "rest.pth").write_text(f"{Path(sys.prefix) / library}\n")
    subprocess.run([PYTHON, "tools/wheel.py", "--install"], cwd=TREE, env=environment(), check=True)


def try_all(part: str, changes: list[Change], binaries: list[tuple[str, Command]]) -> None:
    """Runs the part's tests for each change, and writes the changes that no test has noticed."""
    _, crate, in_python = PARTS[part]
    commands = [command for folder, command in binaries if folder == crate]
    if in_python:
        commands.append(([str(PYTHON), "-m", "pytest", "-x", *in_python], TREE))
    for command in [one for one in commands if noticed(0, [one])]:
        print(f"{part}: left out, as it fails without any change: {' '.join(command[0])}", flush=True)
        commands.remove(command)

    def result_of(change: Change) -> str:
        result = change.get("left out") or ("noticed" if noticed(change["number"], commands) else "missed")
        if result == "missed":
            print(change["name"], flush=True)
        return result

    results: dict[str, list[str]] = defaultdict(list)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for change, result in zip(changes, pool.map(result_of, changes)):
            results[result].append(change["name"])
    print(f"{part}: " + ", ".join(f"{len(names)} {result}" for result, names in sorted(results.items())), flush=True)
    (FOUND / f"{part}.json").write_text(json.dumps(results, indent=1))


def noticed(number: int, commands: list[Command]) -> bool:
    """Whether one of the tests fails, or does not end."""
    quiet: dict[str, Any] = dict.fromkeys(("stdout", "stderr", "stdin"), subprocess.DEVNULL)
    for command, folder in commands:
        limited = ["prlimit", f"--cpu={PROCESSOR}", *command]
        with subprocess.Popen(limited, cwd=folder, env=environment(number), start_new_session=True, **quiet) as process:
            try:
                failed = process.wait(CLOCK) != 0
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                failed = True
        if failed:
            return True
    return False


if __name__ == "__main__":
    main()
