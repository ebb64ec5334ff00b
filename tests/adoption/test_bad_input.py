"""Bad input: a text that says what, where and what to do, an exit code that is not 0, and never a hang."""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from .systems import ORIGINALS, TITIN, WATCHDOG, Outcome, System, outcome

REFUSED = Path(__file__).parent / "refused/refused.py"
CASES = [
    node.name
    for node in ast.parse(REFUSED.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name != "use"
]
PORTS = "{f_init: initial, o_i: [out, many_out], s: [in, many_in], o_f: final}"


def refused(system: System, folder: Path, cases: list[str]) -> Outcome:
    """A run with an instance for each of these cases, which nothing connects."""
    components = "".join(f"    {case}: {{implementation: {case}, ports: {PORTS}}}\n" for case in cases)
    programs = "".join(f"  {case}: {{executable: {sys.executable}, args: {REFUSED} {case}}}\n" for case in cases)
    path = folder / f"{system.name}.ymmsl"
    path.write_text(
        f"ymmsl_version: v0.1\nmodel:\n  name: refused\n  components:\n{components}"
        f"settings: {{k: 1}}\nimplementations:\n{programs}"
    )
    return outcome(system.start(path, folder / system.name), folder / system.name)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """What MUSCLE3 raises in each case."""
    end = refused(ORIGINALS[-1], tmp_path_factory.mktemp("refused"), CASES)
    return end.records


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_call_raises_as_on_muscle3(case, theirs, tmp_path):
    ours = refused(TITIN, tmp_path, [case])
    assert ours.records[case] == theirs[case] != [], ours.output
    assert ours.code in (0, 1)


def run(folder: Path, text: str, files: dict[str, str] | None = None) -> tuple[int, str]:
    """A run of a description, in which FOLDER is this folder; the exit code, and all that is said."""
    for name, content in (files or {}).items():
        (folder / name).write_text(content)
    path = folder / "model.ymmsl"
    path.write_text(text.replace("FOLDER", str(folder)).replace("PYTHON", sys.executable))
    end = outcome(TITIN.start(path, folder / "run"), folder / "run")
    return end.code, end.output


PAIR = """
ymmsl_version: v0.1
model:
  name: pair
  components:
    macro: {ports: {o_i: out, s: back}, implementation: macro}
    micro: {ports: {f_init: in, o_f: final}, implementation: micro}
  conduits: {macro.out: micro.in, micro.final: macro.back}
settings: {SETTINGS}
implementations:
  macro: {executable: PYTHON, args: FOLDER/macro.py}
  micro: {executable: PYTHON, args: FOLDER/micro.py}
"""

BEGIN = """
import numpy as np
from libmuscle import *
from ymmsl import Operator, Settings
"""
MACRO = (
    BEGIN
    + """
instance = Instance({Operator.O_I: ["out"], Operator.S: ["back"]})
while instance.reuse_instance():
    instance.send("out", Message(0.0, None, 1))
    instance.receive("back")
"""
)
MICRO = (
    BEGIN
    + """
instance = Instance({Operator.F_INIT: ["in"], Operator.O_F: ["final"]})
while instance.reuse_instance():
    message = instance.receive("in")
    instance.send("final", message)
"""
)

#: Changes to the pair (settings, and what is replaced in its programs), and the words of the error.
MISTAKES = {
    "operators that differ": ("", {"micro": ('Operator.F_INIT: ["in"]', 'Operator.S: ["in"]')}, ["in", "F_INIT", "S"]),
    "received twice": (
        "",
        {"micro": ('message = instance.receive("in")', 'instance.receive("in"); message = instance.receive("in")')},
        ['Tried to receive twice on the same port "in"', "Did you forget to call reuse_instance()"],
    ),
    "settings without the flag": (
        "",
        {"micro": ('receive("in")', 'receive_with_settings("in")')},
        ["receive_with_settings() on an F_INIT port", "DONT_APPLY_OVERLAY"],
    ),
    "out of order, checked": (
        "muscle_checks: strict",
        {"macro": ('    instance.receive("back")', '    instance.send("out", Message(0.0))')},
        ["out", "back"],
    ),
    "type of MUSCLE3's alone": (
        "muscle_strict_types: true",
        {"macro": ("None, 1)", "None, {'a': [Grid(np.zeros(3, 'int8'))]})")},
        ["Unsupported array data type int8", "int32, int64, float32, float64, bool", "muscle_strict_types"],
    ),
    "array of objects": (
        "",
        {"macro": ("None, 1)", "None, np.array([object()]))")},
        ["Unsupported array data type", "object"],
    ),
    "object": ("", {"macro": ("None, 1)", "None, object())")}, ["TypeMismatch", "object"]),
    "number as a key": ("", {"macro": ("None, 1)", "None, {1: 2})")}, ["key"]),
    "a level that is none": (
        "micro.muscle_local_log_level: 7",
        {},
        ["muscle_local_log_level", "micro reported an error: TypeError"],
    ),
    "a program without an instance": ("", {"micro": (MICRO, "print('hello')")}, ["micro", "before it had joined"]),
    "exit code 0 in the middle": (
        "",
        {"micro": ('message = instance.receive("in")', "raise SystemExit(0)")},
        ["micro"],
    ),
    "an exception": (
        "",
        {"micro": ('message = instance.receive("in")', "raise ValueError('too hot')")},
        ["micro", "too hot"],
    ),
    "error_shutdown": (
        "",
        {"micro": ('message = instance.receive("in")', "instance.error_shutdown('too hot'); raise SystemExit(1)")},
        ["micro", "too hot"],
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_ends_the_run_with_a_text(name, tmp_path):
    settings, changes, words = MISTAKES[name]
    files = {"macro": MACRO, "micro": MICRO}
    for program, (old, new) in changes.items():
        assert old in files[program]
        files[program] = files[program].replace(old, new)
    code, said = run(tmp_path, PAIR.replace("SETTINGS", settings), {f"{name}.py": text for name, text in files.items()})
    assert code == 1, said
    assert all(word in said for word in words), said


def test_types_beyond_those_of_muscle3_arrive(tmp_path):
    macro = MACRO.replace("None, 1)", "None, {'a': np.array([1, 2], 'int8'), 'b': Grid(np.array([1j]), ['x'])})")
    macro = macro.replace(
        'instance.receive("back")',
        'data = instance.receive("back").data; '
        'assert data["a"].array.dtype == np.int8 and list(data["a"].array) == [1, 2]; '
        'assert data["b"].array[0] == 1j and data["b"].indexes == ["x"]',
    )
    code, said = run(tmp_path, PAIR.replace("SETTINGS", ""), {"macro.py": macro, "micro.py": MICRO})
    assert code == 0, said


def test_a_slot_beyond_the_length(tmp_path):
    macro = MACRO.replace('"out"]', '"out[]"]').replace('"back"]', '"back[]"]')
    macro = macro.replace("None, 1))", "None, 1), 2)")
    text = PAIR.replace("SETTINGS", "").replace("implementation: micro}", "implementation: micro, multiplicity: 2}")
    code, said = run(tmp_path, text, {"macro.py": macro, "micro.py": MICRO})
    assert code == 1 and 'slot 2 of port "out", which has length 2' in said, said


def test_an_executable_that_is_not_there(tmp_path):
    text = PAIR.replace("SETTINGS", "").replace(
        "executable: PYTHON, args: FOLDER/micro.py", "executable: no_such_python"
    )
    code, said = run(tmp_path, text, {"macro.py": MACRO})
    assert code == 1 and "no_such_python" in said and "micro" in said, said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ymmsl_version: v0.1\nmodle: {}\n", ["modle", "model"]),
        (PAIR.replace("SETTINGS", "").replace("micro.in", "micro.inn"), ["inn", "micro"]),
        ("a: [", ["model.ymmsl"]),
    ],
)
def test_a_description_that_is_wrong(text, words, tmp_path):
    code, said = run(tmp_path, text)
    assert code == 1
    assert all(word in said for word in words), said


def alone(folder: Path, *words: str, **environment: str) -> tuple[int, str]:
    """The micro model, started by hand."""
    (folder / "micro.py").write_text(MICRO)
    command = [sys.executable, folder / "micro.py", *words]
    done = subprocess.run(
        command, env=TITIN.environment | environment, capture_output=True, text=True, timeout=WATCHDOG
    )
    return done.returncode, done.stderr


def test_a_program_that_is_not_told_its_name(tmp_path):
    code, said = alone(tmp_path)
    assert code == 1 and "A --muscle-instance command line argument or MUSCLE_INSTANCE" in said


def test_a_program_that_is_not_told_its_manager(tmp_path):
    code, said = alone(tmp_path, "--muscle-instance=micro")
    assert code == 1 and "No manager is known" in said and "muscle_manager" in said


def test_a_manager_of_muscle3s(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"tcp:127.0.0.1:{server.getsockname()[1]}"
        code, said = alone(tmp_path, MUSCLE_INSTANCE="micro", MUSCLE_MANAGER=place)
    assert code == 1 and f"{place} is a MUSCLE3 manager" in said and "titin's `muscle_manager`" in said


def test_a_manager_that_is_gone(tmp_path):
    code, said = alone(tmp_path, "--muscle-instance=micro", f"--muscle-manager={tmp_path}/connection.json")
    assert code == 1 and "micro could not join the run" in said and f"{tmp_path}/connection.json" in said


def test_an_instance_that_the_description_lacks(tmp_path):
    text = PAIR.replace("SETTINGS", "").replace("FOLDER/micro.py", "FOLDER/micro.py --muscle-instance=mikro")
    code, said = run(tmp_path, text, {"macro.py": MACRO, "micro.py": MICRO})
    assert code == 1 and "mikro" in said and "micro" in said, said
    assert "Its output says why. If that is not about titin" in said, said


def test_a_program_of_muscle3s_in_a_run_of_titin(tmp_path):
    """MUSCLE3's library takes the path for an address; the run names the program, the cause and the remedy."""
    text = PAIR.replace("SETTINGS", "")
    text += "# the micro model has MUSCLE3's own library\nresources: {}\n"
    (tmp_path / "macro.py").write_text(MACRO)
    (tmp_path / "micro.py").write_text(f"import sys\nsys.path.insert(0, {str(ORIGINALS[-1].folder)!r})\n{MICRO}")
    code, said = run(tmp_path, text)
    assert code == 1 and "micro" in said and "before it had joined" in said, said
    assert "MUSCLE3's own library, which cannot join a run of titin's" in said and "titin-muscle3" in said, said


def test_an_exception_that_nothing_catches_is_the_reason(tmp_path):
    program = MICRO.replace("    instance.send", "    raise ValueError('a negative density')\n    instance.send", 1)
    assert program != MICRO
    code, said = run(tmp_path, PAIR.replace("SETTINGS", ""), {"macro.py": MACRO, "micro.py": program})
    assert code == 1 and "micro reported an error: ValueError: a negative density" in said, said


def test_a_peer_that_fails_before_it_has_told_the_length_of_a_port(tmp_path):
    macro = (
        MACRO.replace('"out"', '"out[]"')
        .replace('"back"', '"back[]"', 1)
        .replace('receive("back")', 'receive("back", 0)')
    )
    macro = macro.replace(
        'send("out[]", Message(0.0, None, 1))', 'set_port_length("out", 1); instance.send("out", Message(0.0), 0)'
    )
    micro = MICRO.replace('"in"', '"in[]"', 1).replace('"final"', '"final[]"', 1)
    micro = micro.replace('message = instance.receive("in")', "raise ValueError('a negative density')")
    code, said = run(tmp_path, PAIR.replace("SETTINGS", ""), {"macro.py": macro, "micro.py": micro})
    assert code == 1 and "macro: the run has failed because of micro" in said and "has length 0" not in said, said


def test_no_options(tmp_path):
    done = subprocess.run(TITIN.command, capture_output=True, text=True, env=os.environ, cwd=tmp_path)
    assert done.returncode == 2 and "YMMSL_FILE" in done.stderr


def test_calls_after_an_error_that_the_program_has_caught(tmp_path):
    """Each is an error of the documented class, and what the instance knows can still be asked."""
    macro = MACRO.replace(
        '    instance.receive("back")\n',
        """
    asked = {
        "received": lambda: instance.receive("back", 9),
        "sent": lambda: instance.send("out", Message(0.0), 0),
        "resized": lambda: instance.set_port_length("out", 2),
        "begun": instance.reuse_instance,
        "length": lambda: instance.get_port_length("out"),
        "setting": lambda: instance.get_setting("k"),
    }
    for name, call in asked.items():
        try:
            print(name, call())
        except Exception as raised:
            print(name, type(raised).__name__)
    raise SystemExit
""",
    )
    macro = macro.replace('"out"]', '"out[]"]').replace('"back"]', '"back[]"]').replace("None, 1))", "None, 1), 0)")
    text = PAIR.replace("SETTINGS", "k: 5").replace("implementation: micro}", "implementation: micro, multiplicity: 2}")
    code, said = run(tmp_path, text, {"macro.py": macro, "micro.py": MICRO})
    assert code == 1, said
    printed = (tmp_path / "run/instances/macro/stdout.txt").read_text().splitlines()
    errors = [f"{name} RuntimeError" for name in ("received", "sent", "resized", "begun")]
    assert printed == [*errors, "length 2", "setting 5"], said
