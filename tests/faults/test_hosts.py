"""However a process with several instances ends, the run ends, names the culprit, and leaves nothing behind."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import Manage
from .conftest import HOST, PROGRAMS, Run, meeting_place
from .test_death import AFTER, BEFORE, HOSTS, IN_THE_MIDDLE, check_ended

Start = Callable[..., Run]

#: The kinds of guests that a host in the description runs: coroutines, functions of a library on threads, steps of a
#: library.
GUESTS = {
    "coroutines": '{{titin: {{host: crowd, function: "hosts:{name}"}}, env: {{HOW: {how}}}}}',
    "c-function": "{{titin: {{host: crowd, library: {c}, function: {name}}}, env: {{HOW: {how}}}}}",
    "c-step": "{{titin: {{host: crowd, library: {c}, step: {name}}}, env: {{HOW: {how}}}}}",
    "fortran-function": "{{titin: {{host: crowd, library: {fortran}, function: {name}}}, env: {{HOW: {how}}}}}",
    "fortran-step": "{{titin: {{host: crowd, library: {fortran}, step: {name}}}, env: {{HOW: {how}}}}}",
}


def cases(ways: dict[str, str]) -> list[tuple[str, str]]:
    """Every kind of guest with every way to fail.

    A host loads its guests, and a library has no exceptions then. In Fortran no code of a library runs when the library
    is loaded.
    """
    pairs = [(kind, how) for kind in GUESTS for how in ways if how != "never"]
    pairs = [(kind, how) for kind, how in pairs if kind == "coroutines" or how != "before-exception"]
    return [(kind, how) for kind, how in pairs if not (kind.startswith("fortran") and how.partition("-")[2])]


@pytest.fixture
def crowd(start: Start, libraries: dict[str, Path], tmp_path: Path) -> Callable[[str, str], Run]:
    """Starts a run in which the host process ``crowd`` has the culprit and a guest. The culprit fails in this way."""

    def begin(kind: str, how: str) -> Run:
        shutil.copy(PROGRAMS / "hosts.py", tmp_path)
        culprit, guest = (GUESTS[kind].format(name=name, how=how, **libraries) for name in ("culprit", "guest"))
        text = HOST.format(culprit=culprit, guest=guest, python=sys.executable, programs=PROGRAMS, folder=tmp_path)
        return start(model=text, directory="run")

    return begin


Crowd = Callable[[str, str], Run]


@pytest.mark.parametrize(("kind", "how"), cases(IN_THE_MIDDLE))
def test_a_host_in_the_middle(crowd: Crowd, kind: str, how: str) -> None:
    run = crowd(kind, how)
    check_ended(run, IN_THE_MIDDLE[how])
    # A process that is gone has taken all of its instances along.
    first = "culprit reported an error" if how == "exception" else "host process crowd"
    assert f"First:    {first}" in run.output, run.output
    # The guest has not failed in the way of its process.
    assert "guest: ended with exit code" not in run.output, run.output
    assert run.error().startswith("PeerLost"), run.error()
    assert "culprit" in run.error() or "crowd" in run.error(), run.error()


@pytest.mark.parametrize(("kind", "how"), cases(BEFORE))
def test_a_host_before_it_joins(crowd: Crowd, kind: str, how: str) -> None:
    run = crowd(kind, how)
    check_ended(run, "the mesh is tangled" if how == "before-exception" else BEFORE[how])
    # The host itself reports the exception of an import.
    first = "culprit reported an error" if how == "before-exception" else "host process crowd"
    assert f"First:    {first}" in run.output, run.output


@pytest.mark.parametrize(("kind", "how"), cases(AFTER))
def test_a_host_after_its_coupling(crowd: Crowd, kind: str, how: str) -> None:
    run = crowd(kind, how)
    check_ended(run, AFTER[how])
    assert "First:    host process crowd" in run.output, run.output


@pytest.mark.parametrize("kind", GUESTS)
def test_a_host_without_a_fault(crowd: Crowd, kind: str) -> None:
    run = crowd(kind, "none")
    assert run.wait() == 0, run.output
    assert run.leftovers() == []


@pytest.mark.parametrize("how", IN_THE_MIDDLE)
@pytest.mark.parametrize("host", [host for host in HOSTS if host != "coroutine"])
def test_a_program_of_several_instances_that_was_started_by_hand(
    manage: Manage, programs: dict[str, str], host: str, how: str, tmp_path: Path
) -> None:
    """No guard sees the end of the process. The loss of its links is the only sign."""
    model = HOST.format(
        culprit="{executable: host}", guest="{executable: host}", python="peer", programs=PROGRAMS, folder=tmp_path
    )
    manager = manage(model)
    secret = json.loads(manager.connection.read_text())["secret"]
    executable, arguments = programs[host].removeprefix("executable: ").split("\n    args: [")
    threads_or_steps = arguments.partition(",")[0]
    with (
        manager.start(sys.executable, PROGRAMS / "peer.py", tmp_path, TITIN_INSTANCE="peer") as peer,
        manager.start(executable, threads_or_steps, "2", how) as process,
    ):
        code, output = manager.wait()
        process.communicate()
        peer.communicate()
    assert code == 1, output
    assert "First:    culprit" in output or ("First:    guest" in output and how != "exception"), output
    if how == "exception":
        assert IN_THE_MIDDLE[how] in output
    error = (tmp_path / "error").read_text()
    assert error.startswith("PeerLost"), error
    assert not manager.connection.exists()
    assert not meeting_place(secret).exists()
