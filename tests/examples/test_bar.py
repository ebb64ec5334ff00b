"""The two halves of a bar, each in any language, give the same bits as the whole bar."""

import itertools
import os
import socket
import subprocess

import numpy as np
import pytest

FOLDER = "bar"


@pytest.fixture(scope="module")
def built(examples):
    examples.call("make", folder=FOLDER)
    examples.call("titin", "path", "key", "key", folder=FOLDER)
    return examples.folder / FOLDER


def whole():
    """The whole bar."""
    u = np.zeros(102)
    u[0] = 100
    for _ in range(2000):
        # The cell behind the right end stays cold.
        u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
    return u[1:-1]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def program(built, language):
    """The command of a half in a language."""
    scripts = {"python": "bar.py", "overlapping python": "overlap.py"}
    script = scripts.get(language)
    return ["python3", built / script] if script else [built / f"build/{language}/bar"]


PAIRS = [
    *itertools.product(("c", "cpp", "fortran", "python"), repeat=2),
    ("overlapping python", "overlapping python"),
    ("overlapping python", "fortran"),
    ("c", "overlapping python"),
]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_two_halves_are_the_whole(built, left, right):
    environment = os.environ | {"TITIN_PATH_KEY": str(built / "key")}
    address = f"127.0.0.1:{free_port()}"
    command = [*program(built, left), "left", address]
    listening = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    try:
        command = [*program(built, right), "right", address]
        opened = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=60)
        said, _ = listening.communicate(timeout=60)
    finally:
        listening.kill()
    assert listening.returncode == 0
    halves = np.concatenate([np.array(text.split(), dtype=float) for text in (said, opened.stdout)])
    np.testing.assert_array_equal(halves, whole())
