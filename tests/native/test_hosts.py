"""Functions of shared libraries that one process runs as instances, as the description says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import Build, run

MODEL = """\
ymmsl_version: v0.2
models:
  hosts:
    components:
      source: {{description: sends, ports: {{o_i: out}}, implementation: source}}
      sum:
        description: receives
        ports: {{s: in}}
        implementation: sum
        multiplicity: 1
    conduits: {{source.out: sum.in}}
    matching_timelines: {{source: sum}}
programs:
  source: {{titin: {{host: crowd, library: {library}, function: source}}}}
  sum: {{titin: {{host: {host}, library: {library}, {how}: sum}}}}
"""


def text(build: Build, host: str = "crowd", how: str = "step") -> str:
    return MODEL.format(library=build("guests", "c", shared=True), host=host, how=how).replace(
        "        multiplicity: 1\n", ""
    )


@pytest.mark.parametrize("host", ["crowd", "other"])
def test_functions_share_a_process_or_have_two(build: Build, tmp_path: Path, host: str) -> None:
    run(tmp_path, text(build, host))
    folder = tmp_path / "run/instances"
    assert {path.name for path in folder.iterdir()} == {"crowd", host}
    assert (folder / host / "stdout.txt").read_text() == "sum has them all\n"
    joined = [line for line in (tmp_path / "run/titin_manager.log").read_text().splitlines() if "  joined: " in line]
    assert len({line.split("process ")[1].split()[0] for line in joined}) == len({"crowd", host})


def test_only_threads_that_take_turns_share_what_they_allocate_from(build: Build, tmp_path: Path) -> None:
    run(tmp_path, text(build, "other"))
    arenas = [int((tmp_path / "run/instances" / host / "stderr.txt").read_text()) for host in ("crowd", "other")]
    assert arenas[0] > 1
    assert arenas[1] == 1


def failing(folder: Path, model: str) -> str:
    """Runs a model that fails; its report."""
    (folder / "model.ymmsl").write_text(model)
    command = [TITIN, "run", "model.ymmsl", "--run-dir", "run"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2), done.stdout + done.stderr
    return done.stdout + done.stderr


def test_one_that_fails_is_named_with_its_host(build: Build, tmp_path: Path) -> None:
    report = failing(tmp_path, text(build).replace("function: source", "function: broken"))
    assert "source reported an error: the ice is too thin" in report
    assert "run by host crowd" in report or "program source" in report
    assert "instances/crowd" in report


@pytest.mark.parametrize("name", ["source", "sum"])
def test_one_that_ends_the_process_is_named(build: Build, tmp_path: Path, name: str) -> None:
    report = failing(tmp_path, text(build).replace(f": {name}}}}}", ": quits}}"))
    assert f"{name} reported an error: its function ended the whole process, by exit()" in report, report
    assert f"See what {name} reports above" in report


def test_a_function_that_is_not_there_is_named(build: Build, tmp_path: Path) -> None:
    report = failing(tmp_path, text(build).replace("step: sum", "step: sums"))
    assert "no function sums" in report, report


def test_what_stands_beside_titin_is_refused(build: Build, tmp_path: Path) -> None:
    report = failing(
        tmp_path, text(build).replace("programs:\n  source: {titin", "programs:\n  source: {executable: ./a, titin")
    )
    assert 'leave out "executable"' in report, report


def test_programs_of_one_host_are_alike(build: Build, tmp_path: Path) -> None:
    report = failing(tmp_path, text(build).replace("  sum: {titin", "  sum: {env: {A: b}, titin"))
    assert 'their "env" differs' in report, report
    report = failing(tmp_path, text(build, "source"))
    assert "has the name of an instance" in report, report
