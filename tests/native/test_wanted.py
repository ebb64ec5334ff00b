"""A program in C declares the data it wants: element type, rank, extents and order. Other data are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import ROOT, TITIN, Manage, config
from .conftest import Build
from .test_hosted import model

MODEL = """\
ymmsl_version: v0.2
models:
  wanted:
    components:
      sender: {{ports: {{o_f: out}}, implementation: sender}}
      receiver: {{ports: {{f_init: {port}}}, implementation: receiver}}
    conduits: {{sender.out: receiver.{port}}}
settings: {{k: 0.5, dt: 0.1, t_max: 1.0}}
programs:
  sender: {{executable: {python}, args: [{folder}/sender.py]}}
  receiver: {{executable: {receiver}}}
"""

#: A program that sends these data one after the other.
SENDER = """\
import ml_dtypes
import numpy as np
import titin
types = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
types += ["float16", "float32", "float64", "complex64", "complex128", "bfloat16"]
table = np.arange(6.0).reshape(2, 3)
everything = [np.ones(2, name) for name in types] + [table, np.asfortranarray(table)]
everything += [None, 1.5, "text", {"cells": table}, table[0], table[:1]]
with titin.Instance(o_f=["out"], unchecked="sends many messages in O_F") as instance:
    while instance.reuse():
        for number, data in enumerate(DATA):
            instance.send("out", data, timestamp=float(number))
"""


def couple(folder: Path, receiver: Path, data: str, port: str = "in") -> str:
    """The output of a run that fails with these data."""
    (folder / "sender.py").write_text(SENDER.replace("DATA", data))
    (folder / "model.ymmsl").write_text(
        MODEL.format(python=sys.executable, folder=folder, receiver=receiver, port=port)
    )
    command = [TITIN, "run", "model.ymmsl", "--run-dir", "run"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    said = "".join(file.read_text() for file in folder.glob("run/instances/*/stderr.txt"))
    assert done.returncode == 1, done.stdout + said
    return done.stdout + said


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("c", "port 'in', message from sender.out: expected an array of float32 of shape [1, 3] in C order"),
        (
            "f90",
            "port 'in', message from sender.out: expected an array of float32 of rank 2 in Fortran order, "
            "found float64 of shape [1, 3]",
        ),
    ],
)
def test_only_what_is_wanted_is_given(build: Build, tmp_path: Path, language: str, words: str) -> None:
    said = couple(tmp_path, build("wanted", language), "everything")
    assert words in said, said
    # A backtrace of Fortran names the file, too.
    failed = {"c": "wanted.c:", "f90": "STOP wanted.f90:"}
    assert failed[language] not in said, said


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ("[np.arange(10)]", "found int64 of shape [10]"),
        ("[np.ones((2, 5))]", "found float64 of shape [2, 5] in C order"),
        ("[1.5]", "found the real number 1.5"),
    ],
)
def test_the_program_of_the_tutorial_refuses_what_it_does_not_expect(tmp_path: Path, data: str, found: str) -> None:
    program, source = tmp_path / "micro", ROOT / "examples/reaction-diffusion/c/micro.c"
    subprocess.run(["cc", *config("--cflags"), source, "-o", program, *config("--libs"), "-lm"], check=True)
    said = couple(tmp_path, program, data, "initial_state")
    words = "port 'initial_state', message from sender.out: expected an array of float64 of rank 1"
    assert f"receiver reported an error: {words}, {found}" in said, said


@pytest.mark.parametrize("symbol", ["twice", "trusting"])
def test_a_filter_refuses_what_it_does_not_expect(build: Build, manage: Manage, symbol: str) -> None:
    host, text = model(build, "c", symbol)
    manager = manage(text)
    hosted = manager.run(host, "whole")
    assert hosted.returncode != 0
    assert "filter 'twice' failed" in hosted.stderr
    assert "expected an array of float64 of rank 1, found int64 of shape [2]" in hosted.stderr, hosted.stderr
    assert manager.wait()[0] == 1
