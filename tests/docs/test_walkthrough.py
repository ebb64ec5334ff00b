"""README, tutorial, sites.md, relays.md, paths.md, mpwide.md, muscle2.md, muscle3.md, editors.md, studies.md and the
pages of docs/howto, walked through: their files are written, their commands run, and the output is as shown.

A block with a title is a file. If the title is a path of an example, the block must equal the example's file. In a
`console` block, lines that begin with `$ ` are commands. The lines below a command are its output, where `...` stands
for any text. A `sh` block is not run.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import may_leave, needs

ROOT = Path(__file__).parents[2]
WATCHDOG = 120  # seconds; only a hang takes so long

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)


def blocks(page):
    """Language, title and text of each block."""
    return [match.groups() for match in BLOCK.finditer((ROOT / page).read_text())]


def steps(text):
    """The commands of a console block, each with its output. A command goes on after a backslash at the end of a
    line."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found[-1][0].endswith("\\"):
            found[-1][0] += "\n" + line
        else:
            found[-1][1].append(line)
    return found


def pattern(lines):
    """A pattern for an output: `...` on a line of its own stands for any lines, within a line for any text."""
    parts = []
    for line in lines:
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(re.escape(part) for part in line.split("...")) + r"\n")
    return "".join(parts)


class Walk:
    """The state of a shell from command to command: the current folder and the environment."""

    def __init__(self, folder):
        self.folder = folder
        # As in an activated virtual environment.
        self.environment = os.environ | {"VIRTUAL_ENV": str(Path(sys.executable).parents[1])}

    def block(self, text):
        for command, expected in steps(text):
            words = command.split()
            if words[0] == "source":
                continue  # the environment is active already
            if words[0] == "export":
                name, value = words[1].split("=")
                self.environment[name] = value.replace("$PWD", str(self.folder))
                continue
            if words[0] == "cd":
                self.folder = (self.folder / words[1]).resolve()
                assert self.folder.is_dir(), command
                continue
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=WATCHDOG,
            )
            said = done.stdout if done.stdout.endswith("\n") or not done.stdout else done.stdout + "\n"
            assert re.fullmatch(pattern(expected), said), f"$ {command}\n(exit code {done.returncode})\n{said}"


@pytest.fixture
def copy(tmp_path):
    """A copy of the tree's examples, so that the tree stays clean."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("build", "__pycache__"))
    return tmp_path


def test_the_readme_is_true(copy):
    walk = Walk(copy)
    shown = 0
    for language, title, text in blocks("README.md"):
        if title:
            assert (ROOT / title).read_text() == text, f"README.md shows another {title}"
            shown += 1
        elif language == "console":
            walk.block(text)
    assert shown == 2


def test_the_tutorial_is_true(tmp_path):
    walk = Walk(tmp_path)
    written = []
    for language, title, text in blocks("docs/tutorial.md"):
        if title:
            (tmp_path / title).write_text(text)
            written.append(title)
        elif language == "console":
            walk.block(text)
    example = ROOT / "examples/reaction-diffusion"
    for name in ["macro.py", "micro.py", "micro.c", "macro.cpp", "micro.f90", "model.ymmsl"]:
        assert name in written
        same = [path for path in example.rglob(name) if "build" not in path.parts]
        assert same and same[0].read_text() == (tmp_path / name).read_text(), f"the tutorial shows another {name}"


@pytest.fixture
def relays_end(tmp_path):
    """Ends the relays and programs that a page has started, also if the page fails."""
    yield
    for file in tmp_path.glob("*.pid"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGTERM)


@pytest.fixture
def clusters_end(copy, monkeypatch):
    """Ends the hosts that a page has started, also if the page fails. Other tests have their own."""
    monkeypatch.setenv("TMPDIR", str(copy))
    yield
    subprocess.run([copy / "examples/clusters/clusters.sh", "down"], check=True, timeout=WATCHDOG)


@pytest.mark.usefixtures("clusters_end")
def test_the_walk_from_a_laptop_to_two_clusters_is_true(copy):
    needs("dropbear", "ssh", "ip")
    if not may_leave():
        pytest.skip("namespaces are for root")
    walk = Walk(copy)
    shown = []
    for language, title, text in blocks("docs/sites.md"):
        if title:
            assert (ROOT / title).read_text() == text, f"docs/sites.md shows another {title}"
            shown.append(title)
        elif language == "console":
            walk.block(text)
    assert len(shown) == 3


@pytest.mark.usefixtures("relays_end")
def test_the_page_about_relays_is_true(tmp_path):
    walk = Walk(tmp_path)
    for language, title, text in blocks("docs/relays.md"):
        if title and not title.startswith("~"):
            (tmp_path / title).write_text(text)
        elif language == "console":
            walk.block(text)


@pytest.mark.usefixtures("relays_end")
def test_the_page_about_paths_is_true(copy):
    walk = Walk(copy)
    shown = 0
    for language, title, text in blocks("docs/paths.md"):
        if title:
            assert (ROOT / title).read_text() == text, f"docs/paths.md shows another {title}"
            shown += 1
        elif language == "console":
            walk.block(text)
    assert shown == 2


def test_the_page_about_mpwide_is_true(tmp_path):
    walk = Walk(tmp_path)
    for language, title, text in blocks("docs/mpwide.md"):
        if title:
            (tmp_path / title).write_text(text)
        elif language == "console":
            walk.block(text)


@pytest.mark.parametrize("page", ["muscle2", "muscle3", "editors", "studies"])
def test_a_page_that_brings_its_files_is_true(page, tmp_path):
    if page == "muscle2":
        needs("ruby")
    walk = Walk(tmp_path)
    for language, title, text in blocks(f"docs/{page}.md"):
        if title:
            (tmp_path / title).write_text(text)
        elif language == "console":
            walk.block(text)


@pytest.fixture
def batch_system(tmp_path, monkeypatch):
    """An `sbatch` that submits to a Slurm cluster of two nodes, which ends with the command."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sbatch").write_text(f'#!/bin/sh\nexec {ROOT}/tests/sites/cluster.sh 2 {shutil.which("sbatch")} "$@"\n')
    (tools / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)


@pytest.mark.parametrize("page", sorted(path.name for path in ROOT.glob("docs/howto/*.md")))
def test_the_how_to_is_true(page, copy, request):
    text = (ROOT / "docs/howto" / page).read_text()
    if "sbatch" in text:
        needs("sbatch", "slurmctld", "munged")
        if not may_leave():
            pytest.skip("namespaces are for root")
        request.getfixturevalue("batch_system")
    if "gdb" in text:
        needs("gdb")
    walk = Walk(copy)
    commands = 0
    for language, title, text in blocks(f"docs/howto/{page}"):
        if title:
            (walk.folder / title).write_text(text)
        elif language == "console":
            walk.block(text)
            commands += 1
    assert commands
