"""Two users of one host: without the secret, a user neither reaches nor holds up the other user's run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..conformance import apart
from ..conftest import Manage, Manager
from .conftest import meeting_place

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")

MODEL = """\
ymmsl_version: v0.2
models: {alone: {components: {solver: {implementation: solver}}}}
programs: {solver: {executable: solver}}
"""

PROGRAM = "import titin\nwith titin.Instance() as instance:\n    while instance.reuse(): pass\n"

#: The attempts of a stranger on the files of a run. The program prints a line for each attempt that succeeds.
TRIES = """
import os, sys
connection, place = sys.argv[1:]
tries = {
    "read the secret": lambda: open(connection).read(),
    "look into the meeting place": lambda: os.listdir(place),
    "put a file there": lambda: open(f"{place}/mine", "w"),
    "write to its lock": lambda: open(f"{place}/lock", "r+"),
    "remove its lock": lambda: os.remove(f"{place}/lock"),
    "move it away": lambda: os.rename(place, f"{place}-mine"),
    "take its name": lambda: os.mkdir(place),
}
for name, attempt in tries.items():
    try:
        attempt()
        print(name)
    except OSError:
        pass
"""


def as_nobody(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code as another user, without any power of this user."""
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    return subprocess.run(
        [*nobody, *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=os.environ | environment,
    )


@pytest.fixture
def manager(manage: Manage) -> Manager:
    return manage(MODEL)


def ends_well(manager: Manager) -> None:
    """The run goes on as without a stranger."""
    done = manager.run(sys.executable, "-c", PROGRAM, TITIN_INSTANCE="solver")
    assert done.returncode == 0, done.stderr
    code, output = manager.wait()
    assert code == 0, output


def test_files_of_a_run_are_nothing_for_another_user(manager: Manager) -> None:
    place = meeting_place(json.loads(manager.connection.read_text())["secret"])
    assert place.is_dir()
    tried = as_nobody(os.path.realpath(sys.executable), "-I", "-S", "-c", TRIES, manager.connection, place)
    assert (tried.returncode, tried.stdout) == (0, ""), tried.stdout + tried.stderr
    ends_well(manager)
    assert not place.exists()


@pytest.mark.parametrize("secret", [{}, {"TITIN_SECRET": "0123456789abcdef" * 4}], ids=["none", "another"])
def test_who_has_not_the_secret_of_a_run_does_not_join_it(manager: Manager, secret: dict[str, str]) -> None:
    (address,) = (a for a in json.loads(manager.connection.read_text())["addresses"] if a.startswith("tcp:127."))
    # The stranger may read the files of this Python, wherever they are.
    command = [sys.executable, apart.__file__, "user", sys.executable, "-c", PROGRAM]
    environment = {"TITIN_MANAGER": address, "TITIN_INSTANCE": "solver"} | secret
    joined = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)
    assert joined.returncode == 1
    assert "titin.errors.ConnectionFailed: " in joined.stderr, joined.stderr
    assert "secret" in joined.stderr, joined.stderr
    ends_well(manager)


@pytest.fixture
def left() -> Iterator[Path]:
    """The remains of a killed run of another user: a meeting place that nobody uses."""
    place = Path(f"/dev/shm/titin-{os.urandom(8).hex()}")
    made = as_nobody("sh", "-c", f"mkdir -m 711 {place} && touch {place}/lock")
    assert made.returncode == 0, made.stderr
    yield place
    shutil.rmtree(place)


def test_what_another_user_has_left_is_left_to_that_user(left: Path, manage: Manage) -> None:
    """This user's runs neither touch the meeting place, nor does it hold them up."""
    ends_well(manage(MODEL))
    assert (left / "lock").exists()
    assert left.stat().st_uid == 65534
