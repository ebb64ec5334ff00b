"""Programs for MUSCLE3's C++ interface: data without a run, errors and their texts, ends, ranks, the command line."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest

from ...conftest import TITIN, needs
from .conftest import Build
from .models import TIME_LIMIT, Model, run

#: A program of one's own that answers another.
PAIR = """
sender: {{description: sends, ports: {{o_i: out, s: in}}, implementation: {sender}}}
tested: {{description: answers, ports: {ports}, implementation: {tested}}}
"""
CONDUITS = """
sender.out: tested.in
tested.out: sender.in
"""


def pair(
    tested: str, *arguments: str, sender: str = "sender", ports: str = "{f_init: in, o_f: out}", settings: str = "{}"
) -> Model:
    components = PAIR.format(sender=sender, tested=tested, ports=ports)
    return Model(components, CONDUITS, settings, {tested: list(arguments)})


def failed(model: Model, commands: dict[str, list[str]], folder: Path) -> str:
    """Runs a model that must fail; returns the report, and the log."""
    (folder / "model.ymmsl").write_text(model.text(commands))
    command = [TITIN, "run", "--run-dir", "run", "model.ymmsl"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=TIME_LIMIT)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize("name", ["data", "names"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_without_a_run(name: str, compiler: str, build: Build) -> None:
    done = subprocess.run([build(name, compiler)], capture_output=True, text=True, check=False, timeout=TIME_LIMIT)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


#: What each mistake throws, and what its text says.
MISTAKES = {
    "send on an unknown port": ("logic_error", "there is no port 'unknown' on tested; its ports are"),
    "send on a port that receives": (
        "logic_error",
        "port 'in' of tested is a port of F_INIT, which does not send messages",
    ),
    "receive on a port that sends": (
        "logic_error",
        "port 'out' of tested is a port of O_I, which does not receive messages",
    ),
    "a slot without slots": ("logic_error", "port 'out' of tested has no slots, but slot 0 was given"),
    "no slot": ("logic_error", "port 'many' of tested is a vector port: give a slot, from 0 to 1"),
    "a slot too far": ("runtime_error", "slot 2 is beyond port 'many' of tested, which has the length 2"),
    "a slot below 0": ("runtime_error", "slot -1 was given, but slots count from 0"),
    "F_INIT not connected": ("logic_error", "port 'lonely' is not connected"),
    "S not connected": ("runtime_error", "port 'absent' is not connected"),
    "with settings": ("logic_error", "needs the flag InstanceFlags::DONT_APPLY_OVERLAY"),
    "twice": ("logic_error", "there is no further message on the F_INIT port 'in' in this use"),
    "resized": ("runtime_error", "port 'many' cannot be resized"),
    "a checkpoint without the flag": ("runtime_error", "needs the flag InstanceFlags::USES_CHECKPOINT_API"),
    "a setting that is missing": ("out_of_range", "there is no setting 'none'"),
    "a setting of another type": ("bad_cast", ""),
    "a list in itself": ("runtime_error", "does one contain itself?"),
    "a key with a NUL": ("runtime_error", "the key 'a' of a dict goes on after a NUL"),
    "after the end": ("logic_error", "send was called after reuse_instance has returned false"),
}


def test_mistakes(build: Build, tmp_path: Path) -> None:
    model = Model(
        """
        counter: {description: counts, ports: {o_i: out}, implementation: counter}
        tested: {description: errs, ports: {f_init: in lonely, o_i: out many, s: back absent}, implementation: mistakes}
        echo: {description: answers, ports: {f_init: in, o_f: out}, implementation: echo}
        receiver: {description: receives, multiplicity: 2, ports: {f_init: in}, implementation: receiver}
        """,
        """
        counter.out: tested.in
        tested.out: echo.in
        echo.out: tested.back
        tested.many: receiver.in
        """,
        settings="{word: text}",
    )
    lines = run(model, {name: [str(build(name))] for name in model.programs}, tmp_path)["tested"].splitlines()
    got = dict(line.split(": ", 1) for line in lines)
    for what, (kind, text) in MISTAKES.items():
        assert got[what].startswith(f"{kind}: ") and text in got[what], (what, got[what])
    assert got["setting after the end"] == "text text"
    assert got["port after the end"] == "true"
    assert got["uses"] == "int 4"


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("shutdown", "tested reported an error: the state has become negative"),
        ("unknown", "there is no port 'unknown' on tested"),
        ("own", "an exception has ended the use of the instance"),
        ("exit", "tested ended with exit code 3"),
    ],
)
def test_ends_that_fail_the_run(way: str, said: str, build: Build, tmp_path: Path) -> None:
    report = failed(pair("crash", way), {name: [str(build(name))] for name in ("sender", "crash")}, tmp_path)
    assert "First:    tested" in report
    assert said in report or said in (tmp_path / "run/instances/tested/stderr.txt").read_text(), report


@pytest.mark.parametrize("arguments", [[], ["skip"]])
def test_messages_that_are_not_taken_are_dropped(arguments: list[str], build: Build, tmp_path: Path) -> None:
    model = Model(
        """
        counter: {description: counts, ports: {o_i: out}, implementation: counter}
        tested: {description: leaves the order, ports: {f_init: in, o_f: out}, implementation: order}
        """,
        "counter.out: tested.in",
        arguments={"order": arguments},
    )
    got = run(model, {name: [str(build(name))] for name in ("counter", "order")}, tmp_path)
    assert got["tested"].splitlines() == [
        "in: real 000000000000f03f next none int 4",
        "in: real 0000000000000040 next none int 3",
        "uses: int 4",
    ]


def test_strict_checks(build: Build, tmp_path: Path) -> None:
    model = Model(
        """
        counter: {description: counts, ports: {o_i: out}, implementation: counter}
        tested: {description: leaves the order, ports: {f_init: in, o_f: out}, implementation: order}
        """,
        "counter.out: tested.in",
        settings="{muscle_checks: strict}",
    )
    report = failed(model, {name: [str(build(name))] for name in ("counter", "order")}, tmp_path)
    assert "First:    tested" in report and "F_INIT" in report


def test_large_grids_come_back_equal(build: Build, tmp_path: Path) -> None:
    model = pair("echo", sender="large")
    got = run(model, {name: [str(build(name))] for name in ("large", "echo")}, tmp_path)["sender"].splitlines()
    assert got == [
        *["equal: true", "shape: a grid of float64 with the shape (400, 250) y x", "same memory: true"] * 3,
        "kept: true",
    ]


@pytest.mark.parametrize("root", [0, 1, 2])
def test_ranks(root: int, build: Build, tmp_path: Path) -> None:
    needs("mpicxx", "mpirun")
    program, partner = build("ranks", "mpicxx"), build("partner")
    model = pair("ranks", str(root), sender="partner")
    text = model.text({"partner": [str(partner)], "ranks": [str(program)]})
    text = text.replace("  ranks:\n", "  ranks:\n    execution_model: openmpi\n")
    (tmp_path / "model.ymmsl").write_text(text + "resources: {tested.tested: {mpi_processes: 3}}\n")
    command = [TITIN, "run", "--run-dir", "run", "model.ymmsl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=TIME_LIMIT)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "run/instances/tested/stdout.txt").read_text().splitlines()
    for rank in range(3):
        mine = [line.partition(": ")[2] for line in lines if line.startswith(f"rank {rank}:")]
        assert [line.partition(",")[0] for line in mine] == ["k 0", "k 0.5", "k 1"]
        nothing = "real 000000000000f0bf next none nil"
        assert all((nothing in line) == (rank != root) for line in mine), mine
        assert all(("grid float64 (4,) - x" in line) == (rank == root) for line in mine)
    received = (tmp_path / "run/instances/sender/stdout.txt").read_text().splitlines()
    sums = [line for line in received if "again" not in line]
    assert [struct.unpack("<d", bytes.fromhex(line.split()[-1]))[0] for line in sums] == [0.0, 1.5, 3.0]
    assert len(received) == 6


def test_the_command_line_comes_before_the_environment(build: Build, tmp_path: Path) -> None:
    """The programs are started by hand, with an environment that names nothing that exists."""
    programs = {"sender": build("counter"), "tested": build("receiver")}
    model = Model(
        """
        counter: {description: counts, ports: {o_i: out}, implementation: counter}
        tested: {description: receives, ports: {f_init: in}, implementation: receiver}
        """,
        "counter.out: tested.in",
    )
    (tmp_path / "model.ymmsl").write_text(
        model.text({"counter": [str(programs["sender"])], "receiver": [str(programs["tested"])]})
    )
    manager = subprocess.Popen(
        [TITIN, "manager", "--run-dir", "run", "model.ymmsl"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        connection = tmp_path / "run/connection.json"
        assert manager.stdout is not None
        while not connection.exists():
            assert manager.stdout.readline()
        wrong = {
            "MUSCLE_INSTANCE": "nobody",
            "MUSCLE_MANAGER": "/nowhere",
            "TITIN_INSTANCE": "none",
            "TITIN_MANAGER": "/none",
        }
        right = {"MUSCLE_INSTANCE": "tested", "MUSCLE_MANAGER": str(connection)}
        started = [
            subprocess.Popen(
                [programs["sender"], "--muscle-instance=counter", f"--muscle-manager={connection}"],
                env=os.environ | wrong,
            ),
            subprocess.Popen([programs["tested"]], env=os.environ | wrong | right, stdout=subprocess.PIPE, text=True),
        ]
        written = started[1].communicate(timeout=TIME_LIMIT)[0]
        assert [process.wait(TIME_LIMIT) for process in [*started, manager]] == [0, 0, 0]
    finally:
        manager.kill()
        manager.communicate()
    assert written.count("in: ") == 4


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"MUSCLE_INSTANCE": "macro", "MUSCLE_MANAGER": "tcp:127.0.0.1:1"},
            "tcp:127.0.0.1:1 is a MUSCLE3 manager",
        ),
        ({}, "give --muscle-instance=NAME and --muscle-manager=LOCATION"),
        ({"MUSCLE_INSTANCE": "macro", "MUSCLE_MANAGER": "/nowhere/connection.json"}, "/nowhere/connection.json"),
    ],
)
def test_a_run_that_cannot_be_joined(environment: dict[str, str], said: str, build: Build) -> None:
    done = subprocess.run(
        [build("echo")], env=os.environ | environment, capture_output=True, text=True, check=False, timeout=TIME_LIMIT
    )
    assert done.returncode != 0 and said in done.stderr
