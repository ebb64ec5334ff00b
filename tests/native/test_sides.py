"""A filter in Python runs at the Python end of its conduit, whether sender or receiver: so it serves programs in C."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import Build, run

MODEL = """\
ymmsl_version: v0.2
models:
  sides:
    components:
      sender: {{description: sends, ports: {{o_f: out}}, implementation: sender}}
      receiver: {{description: receives, ports: {{f_init: in}}, implementation: receiver}}
    conduits: {{sender.out: {filters} receiver.in}}
programs:
  sender: {{executable: {sender}, args: [{sender_args}]}}
  receiver: {{executable: {receiver}, args: [{receiver_args}]}}
titin: {{filters: {{tenfold: {{python: "own:tenfold"}}}}}}
"""

#: The program of sided.c in Python.
PROGRAM = """\
import sys
import numpy as np
import titin

with titin.Instance(**({"o_f": "out"} if sys.argv[1] == "sender" else {"f_init": "in"})) as instance:
    while instance.reuse():
        if sys.argv[1] == "sender":
            instance.send("out", np.array([1.0, 2.0]), timestamp=0.0)
        else:
            assert instance.receive("in").data.tolist() == [10.0, 20.0]
"""


def model(folder: Path, native: Path, sender: str, receiver: str, filters: str = "tenfold") -> str:
    """The model with a sender and a receiver, each in C or in Python."""
    (folder / "own.py").write_text("def tenfold(data):\n    return 10 * data\n")
    (folder / "both.py").write_text(PROGRAM)
    ends = {"c": (native, ""), "python": (sys.executable, f"{folder}/both.py, ")}
    given = {"sender": ends[sender], "receiver": ends[receiver]}
    words = {role: program for role, (program, _) in given.items()}
    words |= {f"{role}_args": args + role for role, (_, args) in given.items()}
    return MODEL.format(filters=filters, **words)


def check(folder: Path, text: str) -> list[str]:
    """The problems that `titin check` finds."""
    (folder / "checked.ymmsl").write_text(text)
    done = subprocess.run(
        [TITIN, "check", "--json", "checked.ymmsl"], cwd=folder, capture_output=True, text=True, check=False
    )
    return [problem["why"] for problem in json.loads(done.stdout)["problems"]]


@pytest.mark.parametrize(
    ("sender", "receiver", "filters"),
    [
        ("python", "c", "tenfold"),
        ("python", "c", "scale(1.0) tenfold zstd"),
        ("c", "python", "tenfold"),
        ("c", "python", "zstd tenfold"),
        # The conversion runs after the filter in Python, at the receiver. Alone, the conversion would run before the
        # wire.
        ("c", "python", "tenfold astype(float32)"),
    ],
)
def test_it_runs_where_it_can(build: Build, tmp_path: Path, sender: str, receiver: str, filters: str) -> None:
    text = model(tmp_path, build("sided", "c"), sender, receiver, filters)
    assert check(tmp_path, text) == []
    run(tmp_path, text)


def test_where_it_can_run_nowhere_that_is_said(build: Build, tmp_path: Path) -> None:
    text = model(tmp_path, build("sided", "c"), "c", "c")
    (why,) = check(tmp_path, text)
    assert 'filter "tenfold" is in Python and would run in it' in why
    assert 'nor can "sender", at the other end, call it: put a component in Python between the two' in why
    (tmp_path / "model.ymmsl").write_text(text)
    done = subprocess.run([TITIN, "run", "model.ymmsl"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    told = " ".join(done.stderr.split())
    assert "filter 'tenfold' cannot be called here: own:tenfold is a Python function" in told, told
    assert "put a component in Python between the two" in told, told


def test_a_pin_stays_as_it_is(build: Build, tmp_path: Path) -> None:
    (why,) = check(tmp_path, model(tmp_path, build("sided", "c"), "python", "c", "tenfold@receiver"))
    assert 'let it run at the other end: "tenfold@sender"' in why
