"""Programs as MUSCLE 2's manual shows them, in C++, C and Fortran, beside titin's: data the same to the bit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ...conftest import needs
from .conftest import Build, run

PAIR = "      {0}: {{description: a, ports: {{o_i: [{1}], s: [{2}]}}, implementation: {0}}}\n"
TOGETHER = "    matching_timelines: {macro: peer}\n"


def pair(macro: tuple[str, str, str], peer: tuple[str, str, str]) -> str:
    return PAIR.format(*macro) + PAIR.format(*peer)


PYTHON_BOUNCE = """
import numpy as np
import titin

with titin.Instance(o_i=["out"], s=["type", "in"]) as instance:
    while instance.reuse():
        while instance.receive("type").data[0] >= 0:
            data = instance.receive("in").data
            # An array of two dimensions goes back in the other order.
            if isinstance(data, np.ndarray) and data.ndim > 1:
                data = np.asfortranarray(data)
            instance.send("out", data, timestamp=0.0)
"""


@pytest.mark.parametrize("compiler", ["c++", "clang++-19"])
def test_every_type_comes_back_as_it_went(compiler, build: Build, tmp_path):
    ends = pair(("macro", "type, out", "in"), ("peer", "out", "type, in"))
    conduits = "{macro.type: peer.type, macro.out: peer.in, peer.out: macro.in}"
    programs = {"macro": build("check.cpp", compiler), "peer": build("bounce.cpp", compiler)}
    end = run(tmp_path, ends, conduits, programs, more=TOGETHER)
    assert (end.code, end.printed("macro")) == (0, "tests passed\n"), end.said


def test_every_type_goes_through_a_program_of_titin(build: Build, tmp_path):
    (tmp_path / "bounce.py").write_text(PYTHON_BOUNCE)
    ends = pair(("macro", "type, out", "in"), ("peer", "out", "type, in"))
    conduits = "{macro.type: peer.type, macro.out: peer.in, peer.out: macro.in}"
    programs = {"macro": build("check.cpp"), "peer": str(tmp_path / "bounce.py")}
    end = run(tmp_path, ends, conduits, programs, more=TOGETHER)
    assert (end.code, end.printed("macro")) == (0, "tests passed\n"), end.said


PYTHON_MICRO = """
import titin

with titin.Instance(f_init=["in"], o_f=["out"]) as instance:
    while instance.reuse():
        message = instance.receive("in")
        print(message.timestamp, message.next_timestamp, message.data.dtype)
        instance.send("out", message.data / 3, timestamp=message.timestamp)
"""


def test_properties_and_the_end_of_the_time(build: Build, tmp_path):
    (tmp_path / "micro.py").write_text(PYTHON_MICRO)
    ends = (
        PAIR.format("macro", "out", "in")
        + "      peer: {description: a, ports: {f_init: in, o_f: out}, implementation: peer}\n"
    )
    programs = {"macro": build("steps.cpp"), "peer": str(tmp_path / "micro.py")}
    settings = (
        "{macro.dt: 0.5, dt: 7, label: a b, peer.only: 7, max_timesteps: 2, flag: true, third: 1e-05, listed: [1, 2]}"
    )
    end = run(tmp_path, ends, "{macro.out: peer.in, peer.out: macro.in}", programs, settings)
    assert end.code == 0, end.said
    lines = end.printed("macro").splitlines()
    assert lines[:8] == [
        "macro main=1 name=macro",
        "dt=0.5",
        "label=a b",
        "macro:dt=0.5",
        "max_timesteps=2",
        "flag=true",
        "third=1e-05",
        "listed=[1,2]",
    ]
    assert lines[8:10] == ["has only=0 dt=1", "all: 1"]
    assert lines[10:] == [f"step {step}: {3.0 ** -(step + 1):.17g}" for step in range(4)]
    assert end.printed("peer").splitlines() == [f"{t} {t + 0.5} float64" for t in (0.0, 0.5, 1.0, 1.5)]
    log = end.log()
    assert re.search(r"INFO.*macro.*the run is over after 5 values", log, re.IGNORECASE), log
    assert re.search(r"WARN.*macro.*a warning", log, re.IGNORECASE), log


PYTHON_SENDER = """
import numpy as np
import titin

with titin.Instance(o_i=["out"], s=["back"]) as instance:
    while instance.reuse():
        for step in range(3):
            data = np.full(step + 1, step / 4, np.float32)
            instance.send("out", data, timestamp=float(step), settings={"k": 10 + step})
            instance.receive("back")
"""


@pytest.mark.parametrize("operator", ["s", "f_init"])
def test_has_next_ends_with_the_sender(operator, build: Build, tmp_path):
    (tmp_path / "sender.py").write_text(PYTHON_SENDER)
    ends = PAIR.format("macro", "out", "back")
    answer, more = ("o_i", TOGETHER) if operator == "s" else ("o_f", "")
    ends += f"      peer: {{description: a, ports: {{{operator}: in, {answer}: out}}, implementation: peer}}\n"
    programs = {"macro": str(tmp_path / "sender.py"), "peer": build("drain.cpp") + " answer"}
    end = run(tmp_path, ends, "{macro.out: peer.in, peer.out: macro.back}", programs, "{k: 5}", more)
    # Each message on an F_INIT port begins a use, which has the settings of the message.
    k = [5, 5, 5] if operator == "s" else [10, 11, 12]
    assert (end.code, end.printed("peer")) == (0, f"1 0 k={k[0]}\n2 0.25 k={k[1]}\n3 0.5 k={k[2]}\n"), end.said


PYTHON_TEXT = """
import numpy as np
import titin

with titin.Instance(o_i=["out", "text"], s=["in"]) as instance:
    while instance.reuse():
        for step in range(3):
            instance.send("out", np.arange(5.0) * step, timestamp=0.0)
            print(instance.receive("in").data.tolist())
        instance.send("text", "grüße", timestamp=0.0)
"""


@pytest.mark.parametrize("words", ["", " wrong", " latin"])
def test_a_program_in_c(words, build: Build, tmp_path):
    (tmp_path / "macro.py").write_text(PYTHON_TEXT)
    ends = pair(("macro", "out, text", "in"), ("peer", "out", "in, text"))
    conduits = "{macro.out: peer.in, macro.text: peer.text, peer.out: macro.in}"
    programs = {"macro": str(tmp_path / "macro.py"), "peer": build("relay.c") + words}
    end = run(tmp_path, ends, conduits, programs, "{peer.steps: 3, T: 2 s}", TOGETHER)
    assert (end.code == 0) == (not words), end.said
    assert end.printed("macro") == "".join(f"{[1.0 + i * step for i in range(5)]}\n" for step in range(3))
    if words:
        unknown = "there is no property 'unknown' for peer: add a setting of this name"
        assert (unknown if words == " wrong" else "send: there is no port 'gr\ufffd\ufffde' on peer") in end.said
        return
    assert end.printed("peer") == "peer: 3 steps, has k: 0, has steps: 1\ngrüße 8\nstops: 1\n"
    log = end.log()
    assert "3 steps are done" in log and "level 1" in log and "100 % plain" in log and "Latin-1: gr??e" in log, log


PYTHON_RING = """
import titin

with titin.Instance(o_i=["out"], s=["in", "many", "word", "bytes"]) as instance:
    while instance.reuse():
        for step in range(2):
            instance.send("out", instance.receive("in").data * 2, timestamp=float(step))
        print(instance.receive("many").data.tolist(), instance.receive("word").data, instance.receive("bytes").data)
        if instance.setting("k", float) > 2:
            import numpy as np
            instance.send("out", np.zeros(3), timestamp=2.0)
"""


@pytest.mark.parametrize("words", ["", " overflow"])
def test_a_program_in_fortran(words, build: Build, tmp_path):
    (tmp_path / "peer.py").write_text(PYTHON_RING)
    ends = pair(("macro", "out, many, word, bytes", "in"), ("peer", "out", "in, many, word, bytes"))
    same = ", ".join(f"macro.{port}: peer.{port}" for port in ("many", "word", "bytes"))
    conduits = f"{{macro.out: peer.in, peer.out: macro.in, {same}}}"
    programs = {"macro": build("ring.f90") + words, "peer": str(tmp_path / "peer.py")}
    settings = f"{{k: {2.5 if words else 1.5}, max_timesteps: 2, default_dt: 1 s}}"
    end = run(tmp_path, ends, conduits, programs, settings, TOGETHER)
    assert (end.code == 0) == (not words), end.said
    if words:
        assert "3 elements of MUSCLE_DOUBLE have come, and the program's memory has room for 2" in end.said
        return
    assert end.printed("macro") == "macro k=1.5 has 0\n" + "6 4.000000000000000\n" * 2
    assert end.printed("peer") == f"{[2**40, -1, 5]} hello        {bytes([1, 255, 0, 127])}\n"


PYTHON_TYPES = """
import numpy as np
import titin

with titin.Instance(o_i=["out"], s=["back", "word"]) as instance:
    while instance.reuse():
        instance.send("out", np.full(2, 0.25, np.float32), timestamp=0.0)
        print(instance.receive("back").data.tolist(), instance.receive("word").data)
"""


def test_the_module_for_fortran(build: Build, tmp_path):
    (tmp_path / "macro.py").write_text(PYTHON_TYPES)
    ends = pair(("macro", "out", "back, word"), ("peer", "back, word", "in"))
    programs = {"macro": str(tmp_path / "macro.py"), "peer": build("module.f90")}
    end = run(
        tmp_path, ends, "{macro.out: peer.in, peer.back: macro.back, peer.word: macro.word}", programs, more=TOGETHER
    )
    assert (end.code, end.printed("peer")) == (0, "peer2  0.25  0.25\n"), end.said
    assert end.printed("macro") == "[1, 2] word\n"


PYTHON_RANKS = """
import titin

with titin.Instance(o_i=["out"], s=["in"]) as instance:
    while instance.reuse():
        for step in range(3):
            instance.send("out", instance.receive("in").data * 10, timestamp=0.0)
"""


def test_rank_0_of_an_mpi_program_talks(build: Build, tmp_path):
    needs("mpirun.openmpi")
    (tmp_path / "peer.py").write_text(PYTHON_RANKS)
    ends = pair(("macro", "out", "in"), ("peer", "out", "in")).replace(
        "implementation: macro", "implementation: mpi_macro"
    )
    programs = {"mpi_macro": build("ranks.c", "mpicc.openmpi", "-Wno-error"), "peer": str(tmp_path / "peer.py")}
    end = run(tmp_path, ends, "{macro.out: peer.in, peer.out: macro.in}", programs, "{steps: 3}", TOGETHER)
    assert end.code == 0, end.said
    lines = sorted(end.printed("macro").splitlines())
    sums = [10 * (2 * step + 1) for step in range(3)]
    expected = [f"rank {rank} of 2: {int(rank == 0)} {value}" for rank in range(2) for value in sums]
    assert lines == sorted([*expected, "steps 3", *["barrier 0 0"] * 2])
    # Rank 1 is on the other side of each barrier only once rank 0, which comes late, is there too.
    assert (tmp_path / "run/instances/macro/workdir/order").read_text() == "0011" * 3


def test_a_serial_program_is_no_rank_of_the_launcher_of_titin(build: Build, monkeypatch, tmp_path):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    monkeypatch.setenv("SLURM_PROCID", "1")
    ends = pair(("macro", "type, out", "in"), ("peer", "out", "type, in"))
    conduits = "{macro.type: peer.type, macro.out: peer.in, peer.out: macro.in}"
    programs = {"macro": build("check.cpp"), "peer": build("bounce.cpp")}
    end = run(tmp_path, ends, conduits, programs, more=TOGETHER)
    assert (end.code, end.printed("macro")) == (0, "tests passed\n"), end.said


PYTHON_STATES = """
import numpy as np
import titin

with titin.Instance(o_i=["out"], s=["in"]) as instance:
    while instance.reuse():
        instance.send("out", np.array([3.0, 4.0]), timestamp=0.0)
        instance.receive("in")
"""

MISTAKES = {
    "before": "send is called before MUSCLE_Init, or env::init",
    "twice": "MUSCLE is initialized twice",
    "port": "send: there is no port 'uot' on peer in the description; its ports are out in",
    "way": "send on port 'in' of peer, which the description has among the ports that receive",
    "property": "there is no property 'unknown' for peer: add a setting of this name to the description",
    "another": "property 'pee:k' is of another instance than peer",
    "type": "with MUSCLE_INT32: port 'in', message from macro.out, holds an array of float64 (MUSCLE_DOUBLE)",
    "number": "receive with the type 17, which is none of muscle_datatype_t",
    "room": "2 elements of MUSCLE_DOUBLE have come, and the program's memory has room for 1",
    "text": "Text is UTF-8; send other bytes as MUSCLE_RAW",
    "map": "maps, collections, arrays of strings and objects of Java are of MUSCLE 2's Java programs only",
    "matrix": "a ComplexData has 1 dimensions, and its type has 2",
    "huge": "a ComplexData has more elements than memory can have",
    "place": "the place of an element of a ComplexData is larger than an int",
    "nowhere": "a ComplexData whose elements are at a NULL pointer",
    "no_text": "a ComplexData whose elements are at a NULL pointer",
    "barrier": "no barrier",
    "stop": "add the setting max_timesteps (s), or peer.T for this instance",
    "closed": "the sender has finished, and no more messages will come",
    "again": "MUSCLE is initialized again after MUSCLE_Finalize",
    "after": "has_next is called after MUSCLE_Finalize",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_a_clear_text(mistake, build: Build, tmp_path: Path):
    (tmp_path / "macro.py").write_text(PYTHON_STATES)
    ends = pair(("macro", "out", "in"), ("peer", "out", "in"))
    programs = {"macro": str(tmp_path / "macro.py"), "peer": f"{build('mistakes.cpp')} {mistake}"}
    end = run(tmp_path, ends, "{macro.out: peer.in, peer.out: macro.in}", programs, more=TOGETHER)
    assert end.code != 0, end.said
    assert MISTAKES[mistake] in end.printed("peer"), end.printed("peer") + end.said
