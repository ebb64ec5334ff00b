"""However a program ends, the run ends, names the program, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Run

LANGUAGES = ["python", "c", "cpp", "fortran"]

#: Programs that run functions as instances: coroutines, functions on threads, light steps.
HOSTS = ["coroutine", "c-threads", "c-steps", "cpp-threads", "cpp-steps", "fortran-threads", "fortran-steps"]

#: The ways to fail, each with the words that the report must have.
IN_THE_MIDDLE = {
    "exception": "the mesh is tangled",
    "exit": "exit code 3",
    "exit0": "without closing",
    "abort": "SIGABRT",
    "kill": "SIGKILL",
}
BEFORE = {
    "before-exception": "before it had joined",
    "before-abort": "SIGABRT",
    "before-kill": "SIGKILL",
    "never": "before it had joined",
}
AFTER = {
    "after-exit": "exit code 3",
    "after-kill": "SIGKILL",
}

Start = Callable[..., Run]


def cases(ways: dict[str, str]) -> list[tuple[str, str]]:
    """Every language with every way to fail. C has no exceptions before there is an instance."""
    pairs = [(language, how) for language in LANGUAGES + HOSTS for how in ways]
    return [
        (language, how) for language, how in pairs if (language.partition("-")[0], how) != ("c", "before-exception")
    ]


def check_ended(run: Run, reason: str) -> None:
    """The run has failed for this reason, with the culprit as the first cause, and nothing is left."""
    code = run.wait()
    assert code == 1, run.output
    assert "culprit" in run.output, run.output
    assert reason in run.output, run.output
    assert run.leftovers() == []


@pytest.mark.parametrize(("language", "how"), cases(IN_THE_MIDDLE))
def test_in_the_middle(start: Start, programs: dict[str, str], language: str, how: str) -> None:
    run = start(programs[language] + f"{how}]")
    check_ended(run, IN_THE_MIDDLE[how])
    assert run.error().startswith("PeerLost"), run.error()
    assert "culprit" in run.error()


@pytest.mark.parametrize(("language", "how"), cases(BEFORE))
def test_before_it_joins(start: Start, programs: dict[str, str], language: str, how: str) -> None:
    check_ended(start(programs[language] + f"{how}]"), BEFORE[how])


@pytest.mark.parametrize(("language", "how"), cases(AFTER))
def test_after_its_coupling(start: Start, programs: dict[str, str], language: str, how: str) -> None:
    run = start(programs[language] + f"{how}]")
    check_ended(run, AFTER[how])


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_misspelt_port(start: Start, programs: dict[str, str], language: str) -> None:
    run = start(programs[language] + "misspelt]")
    check_ended(run, "outt")
    assert "out" in run.output


@pytest.mark.parametrize("language", ["python", "c", "fortran"])
def test_a_panic_inside_the_library_is_an_error(start: Start, programs: dict[str, str], language: str) -> None:
    run = start(programs[language] + "panic]")
    check_ended(run, "titin_test_panic returned 12: an error inside titin: the library panics, as a test has asked")
    assert "SIGABRT" not in run.output, run.output
    # A program in C that checks the result of no call learns of the error at close().
    if language == "c":
        assert "titin_close returned 12: an error inside titin: the library panics" in run.output


def test_a_forked_child_does_not_keep_the_run_alive(start: Start, programs: dict[str, str]) -> None:
    run = start(programs["python"] + "fork]")
    check_ended(run, "SIGKILL")
    assert run.error().startswith("PeerLost")


def test_what_called_setsid_is_ended_too(start: Start, programs: dict[str, str]) -> None:
    check_ended(start(programs["python"] + "daemon]"), "exit code 3")


def test_all_is_well_without_a_fault(start: Start, programs: dict[str, str]) -> None:
    for language in LANGUAGES + HOSTS:
        run = start(programs[language] + "none]", directory=f"run-{language}")
        assert run.wait() == 0, run.output


def test_the_secret_is_nowhere(start: Start, programs: dict[str, str]) -> None:
    run = start(programs["python"] + "exception]", arguments=["-v"])
    assert run.wait() == 1
    assert (run.folder / "mode").read_text() == "0o600"
    secret = run.secret().encode()
    assert secret not in run.output.encode()
    assert not [path for path in run.directory.rglob("*") if path.is_file() and secret in path.read_bytes()]
