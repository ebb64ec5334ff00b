"""Python functions that one process runs as instances, as the description says."""

from __future__ import annotations

import json
import subprocess

import pytest

from ..conftest import TITIN

MODEL = """\
ymmsl_version: v0.2
models:
  hosts:
    components:
      driver: {description: asks, ports: {o_i: out, s: in}, implementation: driver}
      member: {description: answers, ports: {f_init: in, o_f: out}, implementation: member, multiplicity: 5}
    conduits: {driver.out: member.in, member.out: driver.in}
programs:
  driver: {titin: {host: crowd, function: "parts:driver"}}
  member: {titin: {host: crowd, function: "parts:member"}}
settings: {k: 3}
"""

PARTS = """
import os, threading
import titin

def driver():
    with titin.Instance(o_i=["out[]"], s=["in[]"]) as instance:
        while instance.reuse():
            for slot in range(5):
                instance.send("out", slot, timestamp=0, slot=slot)
            answers = [instance.receive("in", slot=slot).data for slot in range(5)]
            print(answers, os.getpid(), os.path.basename(os.getcwd()))

MEMBER
"""

THREADS = """
def member(instance):
    while instance.reuse():
        message = instance.receive("in")
        instance.send("out", message.data * instance.setting("k", int), timestamp=0)
"""

COROUTINES = """
threads = set()

async def member(instance):
    threads.add(threading.get_ident())
    assert len(threads) == 1
    while await instance.reuse():
        message = await instance.receive("in")
        await instance.send("out", message.data * instance.setting("k", int), timestamp=0)
"""


def run(folder, member, model=MODEL, parts=PARTS):
    (folder / "parts.py").write_text(parts.replace("MEMBER", member))
    (folder / "model.ymmsl").write_text(model)
    command = [TITIN, "run", "model.ymmsl", "--run-dir", "run"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    said = "".join(path.read_text() for path in (folder / "run/instances/crowd").glob("std*.txt"))
    return done.returncode, done.stderr + said


def test_functions_on_threads(tmp_path):
    code, said = run(tmp_path, THREADS)
    assert code == 0, said
    assert "[0, 3, 6, 9, 12]" in said
    assert said.split()[-1] == "workdir"


def test_coroutines_on_one_thread(tmp_path):
    code, said = run(tmp_path, COROUTINES)
    assert code == 0, said
    assert "[0, 3, 6, 9, 12]" in said


def test_what_titin_imports_is_there_before_any_function_begins(tmp_path):
    """Two threads that import different modules of NumPy at once may get an incomplete NumPy."""
    begins = "def driver():\n    print(sorted({'numpy', 'numpy.typing', 'titin.aio'} & {*sys.modules}))"
    parts = PARTS.replace("import titin", "import sys, titin").replace("def driver():", begins)
    code, said = run(tmp_path, COROUTINES, parts=parts)
    assert code == 0, said
    assert "['numpy', 'numpy.typing', 'titin.aio']" in said


def test_an_exception_is_told_with_its_lines(tmp_path):
    for member in (THREADS, COROUTINES):
        folder = tmp_path / str(len(member))
        folder.mkdir()
        code, said = run(folder, member.replace("data *", "data / 0 *"))
        assert code == 1
        assert "ZeroDivisionError" in said
        assert "parts.py" in said


def test_a_module_that_is_not_there(tmp_path):
    code, said = run(tmp_path, THREADS, MODEL.replace("parts:member", "prats:member"))
    assert code == 1
    assert "No module named 'prats'" in said


@pytest.mark.parametrize(
    ("member", "why"),
    [
        ("def member(instance):\n    yield", "the function of member[0] is a generator, so a call does not run it"),
        ("member = 3", "what runs member[0] is a function; found 3"),
        ("def nember(): pass", "has no attribute 'member'"),
        ("raise ValueError('no licence')", "ValueError: no licence"),
    ],
)
def test_what_cannot_be_run_is_told_first(tmp_path, member, why):
    code, _ = run(tmp_path, member)
    assert code == 1
    report = subprocess.run(
        [TITIN, "run", "model.ymmsl"], cwd=tmp_path, capture_output=True, text=True, check=False
    ).stderr
    first = report[report.index("First:") :].split("\n\n")[0]
    assert why in " ".join(first.split("Last:")[0].split()), report
    assert "host.py" not in report
    assert "Try it by itself" not in report


def check(folder, model):
    """The problems that `titin check` finds in a model."""
    (folder / "model.ymmsl").write_text(model)
    command = [TITIN, "check", "--json", "model.ymmsl"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return [(problem["line"], problem["what"], problem["why"]) for problem in json.loads(done.stdout)["problems"]]


def test_functions_that_are_not_on_this_host_are_warned_of(tmp_path):
    (tmp_path / "parts.py").write_text(PARTS.replace("MEMBER", THREADS))
    assert check(tmp_path, MODEL) == []
    # The function may come from the other module, so no problem is reported.
    (tmp_path / "stars.py").write_text("from numpy import *\nraise ValueError('nobody imports it to look')")
    assert check(tmp_path, MODEL.replace("parts:driver", "stars:driver")) == []
    for function, why in {
        "parts:membre": f"{tmp_path}/parts.py has no function membre; did you mean member?",
        "parts.inner:member": f"there is no module parts.inner in {tmp_path}, nor where ",
        "prats:member": f"there is no module prats in {tmp_path}, nor where ",
        "numpy.lingalg:norm": f"there is no module numpy.lingalg in {tmp_path}, nor where ",
    }.items():
        [(line, what, told)] = check(tmp_path, MODEL.replace("parts:member", function))
        assert (line, what) == (10, 'program "member" cannot be started on this host')
        assert told.startswith(why)
    for member, why in {
        "def member(instance):\n    yield 1": "member is a generator, so a call does not run it; take its yield out",
        "member = 3": "member is no function",
        "def member(instance):\n    def inner():\n        yield": None,
        "def member():\n    yield\nmember = run(member)": None,
        "@run\ndef member():\n    yield": None,
        "if titin:\n    member = 3\nelse:\n    def member(): pass": None,
    }.items():
        (tmp_path / "parts.py").write_text(PARTS.replace("MEMBER", member))
        assert [told.split(": ", 1)[1] for _, _, told in check(tmp_path, MODEL)] == ([why] if why else []), member
    (tmp_path / "parts.py").write_text(PARTS.replace("MEMBER", THREADS))
    assert (
        check(tmp_path, MODEL.replace("parts:member", "numpy.linalg:norm").replace("parts:driver", "json:load")) == []
    )


def test_a_process_that_dies_takes_all_along(tmp_path):
    code, said = run(tmp_path, THREADS.replace("message = ", "os.kill(os.getpid(), 9); message = "))
    assert code == 1
    assert "First:    host process crowd was ended by SIGKILL" in said
    assert "(it ran driver, member[0], member[1], member[2], member[3], member[4])" in said
    assert "Affected:" not in said
