"""Runs in which models with the Basic Model Interface take part, and the libraries of models that are compiled."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..conftest import TITIN

MODELS = Path(__file__).with_name("models")
NATIVE = Path(__file__).with_name("native")
#: Seconds for a run, which takes a second or two.
LIMIT = 120

# Loops by hand use the models of these tests in this process.
sys.path.insert(0, str(MODELS))


def bmi(*words: object, **more: Any) -> dict[str, Any]:
    """A program of a description: a model with these arguments of the command."""
    return python("-m", "titin.bmi", "run", *words, **more)


def python(*words: object, **more: Any) -> dict[str, Any]:
    """A program of a description, in Python."""
    path = os.pathsep.join([str(MODELS), str(more.pop("path", ""))]).strip(os.pathsep)
    return {"executable": sys.executable, "args": [str(word) for word in words], "env": {"PYTHONPATH": path}} | more


PEER = python(MODELS / "peer.py")


class Stage:
    """A folder with a description and its run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = 0

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def describe(
        self,
        components: dict[str, dict[str, Any]],
        conduits: dict[str, Any],
        programs: dict[str, Any],
        settings: dict[str, Any] | None = None,
        titin: dict[str, Any] | None = None,
        ranks: dict[str, int] | None = None,
        multiplicity: dict[str, int] | None = None,
    ) -> None:
        """Writes the description; each component is its ports, and has the program of its name.

        ``ranks``: the number of ranks of the components that have several. ``multiplicity``: how many members of a
        component there are.
        """
        made: dict[str, dict[str, Any]] = {
            name: {"description": name, "ports": ports, "implementation": name} for name, ports in components.items()
        }
        for name, count in (multiplicity or {}).items():
            made[name]["multiplicity"] = count
        model: dict[str, Any] = {
            "ymmsl_version": "v0.2",
            "models": {"m": {"components": made, "conduits": conduits}},
            "programs": programs,
            "settings": settings or {},
        }
        if ranks:
            model["resources"] = {f"m.{name}": {"mpi_processes": count} for name, count in ranks.items() if count > 1}
        self.write("model.ymmsl", yaml.safe_dump(model | ({"titin": titin} if titin else {}), sort_keys=False))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        self.runs += 1
        command = [TITIN, "run", "model.ymmsl", "--run-dir", self.directory, *words]
        return subprocess.run(
            command, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT
        )

    @property
    def directory(self) -> Path:
        """The directory of the latest run."""
        return self.folder / f"run{self.runs}"

    def ends_well(self) -> str:
        done = self.run()
        assert done.returncode == 0, done.stdout + done.stderr
        return (self.directory / "titin_manager.log").read_text()

    def fails(self) -> str:
        """The page of a run that fails."""
        done = self.run()
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stderr

    def kept(self, component: str) -> list[Any]:
        """What a peer has received: timestamp, next timestamp, names, array, and what came beside it."""
        found: list[Any] = pickle.loads((self.directory / f"instances/{component}/workdir/kept.pickle").read_bytes())
        return found

    def answered(
        self,
        words: Sequence[object],
        out: str,
        given: str,
        reply: str,
        settings: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Describes a model that sends ``out``, gets ``given`` back in each step, and sends ``out`` at the end."""
        variables = [f"--variable={port}={name}" for port, name in (("out", out), ("last", out), ("in", given))]
        self.describe(
            {
                "model": {"o_i": ["out"], "s": ["in"], "o_f": ["last"]},
                "peer": {"f_init": ["got"], "o_f": ["give"]},
                "keep": {"f_init": ["got"], "o_f": ["give"]},
            },
            {"model.out": "peer.got", "peer.give": "model.in", "model.last": "keep.got"},
            {"model": bmi(*words, *variables), "peer": PEER, "keep": PEER},
            {"peer.reply": reply} | (settings or {}),
            **more,
        )


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiled models, and the loops by hand around two of them."""
    folder = tmp_path_factory.mktemp("native")
    shared = ["-shared", "-fPIC", "-O1"]
    for command in (
        ["gcc", *shared, "-o", "libriver.so", NATIVE / "river.c"],
        ["gcc", *shared, "-o", "libbroken.so", NATIVE / "broken.c"],
        ["gcc", *shared, "-o", "libaquifer.so", NATIVE / "aquifer.c"],
        ["gfortran", *shared, "-o", "libsnow.so", NATIVE / "snow.f90"],
        [
            "gcc",
            "-DENTRY=register_bmi_river",
            "-o",
            "river",
            NATIVE / "loop.c",
            "-L.",
            "-l:libriver.so",
            "-Wl,-rpath,$ORIGIN",
        ],
        ["gcc", "-DENTRY=register_bmi", "-o", "snow", NATIVE / "loop.c", "-L.", "-l:libsnow.so", "-Wl,-rpath,$ORIGIN"],
    ):
        done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder
