"""Instances on threads of one C program, with vector ports, and a filter of one's own in a shared library."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TITIN = Path(sys.executable).parent / "titin"

MODEL = """\
ymmsl_version: v0.2
description: Two instances of one process.
models:
  hosted:
    components:
      sender:
        description: sends
        ports: {o_i: out wide}
        implementation: sender
      receiver:
        description: receives
        ports: {s: in wide}
        implementation: receiver
    conduits:
      sender.out: twice receiver.in
      sender.wide: receiver.wide
    matching_timelines: {sender: receiver}
settings: {dt: 0.5 s}
programs:
  sender: {executable: ./hosted}
  receiver: {executable: ./hosted}
titin:
  filters:
    twice: {library: ./filter.so, symbol: SYMBOL}
"""


def build(folder: Path, name: str, *flags: str) -> None:
    """Compiles one file of C."""
    done = subprocess.run([TITIN, "config", "--cflags", "--libs"], capture_output=True, text=True, check=True)
    warnings = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    source = HERE / f"{name.removesuffix('.so')}.c"
    command = ["cc", *warnings, *flags, "-o", folder / name, source, *shlex.split(done.stdout), "-lm"]
    subprocess.run(command, check=True)


@pytest.fixture
def manager(tmp_path):
    """Starts ``titin manager`` for the model, with this entry point as the filter; its process and connection file."""
    started = []

    def start(symbol):
        build(tmp_path, "hosted")
        build(tmp_path, "filter.so", "-shared", "-fPIC")
        (tmp_path / "model.ymmsl").write_text(MODEL.replace("SYMBOL", symbol))
        process = subprocess.Popen(
            [TITIN, "manager", "model.ymmsl", "--run-dir", tmp_path / "run"],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        while not (tmp_path / "run" / "connection.json").exists():
            assert process.poll() is None, process.communicate()[0]
        return process, {"TITIN_MANAGER": str(tmp_path / "run" / "connection.json")}

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_a_host_runs_its_instances_on_threads(manager, tmp_path):
    process, environment = manager("twice")
    hosted = subprocess.run([tmp_path / "hosted"], env=environment, capture_output=True, text=True, check=False)
    assert hosted.returncode == 0, hosted.stderr
    assert hosted.stdout == "both are done\n"
    output = process.communicate()[0]
    assert process.returncode == 0, output
    assert "all is sent" in (tmp_path / "run" / "titin_manager.log").read_text()


def test_a_filter_that_is_not_there_is_named(manager, tmp_path):
    process, environment = manager("thrice")
    hosted = subprocess.run([tmp_path / "hosted"], env=environment, capture_output=True, text=True, check=False)
    assert hosted.returncode != 0
    assert "twice" in hosted.stderr
    assert "thrice" in hosted.stderr
    output = process.communicate()[0]
    assert process.returncode == 1, output
