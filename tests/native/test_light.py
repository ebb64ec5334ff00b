"""Many light instances on a few threads of one program, and in an event loop of the program's own."""

from __future__ import annotations

import os
import subprocess

import pytest

from ..conftest import Manage
from .conftest import Build

#: The number of instances is such that the output of `titin manager` for all fits into a pipe.
COUNT = 40


def ring() -> str:
    """A ring of cells: each sends to the two ports of the next one."""
    lines = ["ymmsl_version: v0.2", "models:", "  ring:", "    components:"]
    for number in range(COUNT):
        lines += [
            f"      cell_{number}:",
            "        description: sends to the next one",
            "        ports: {o_i: out, s: in spare}",
            "        implementation: host",
        ]
    lines.append("    conduits:")
    lines += [
        f"      cell_{number}.out: [cell_{(number + 1) % COUNT}.in, cell_{(number + 1) % COUNT}.spare]"
        for number in range(COUNT)
    ]
    lines += ["programs:", "  host: {executable: host}", "titin:", "  buffer: {default: {messages: 1}}"]
    return "\n".join(lines)


PAIR = """\
ymmsl_version: v0.2
models:
  pair:
    components:
      sender: {description: sends, ports: {o_i: out}, implementation: host}
      receiver: {description: receives, ports: {s: in}, implementation: host}
    conduits: {sender.out: receiver.in}
    matching_timelines: {sender: receiver}
programs:
  host: {executable: host}
"""


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_many_instances_on_three_threads(build: Build, manage: Manage, language: str) -> None:
    host = build("light", language)
    manager = manage(ring())
    hosted = manager.run(host)
    assert hosted.returncode == 0, hosted.stderr
    assert hosted.stdout == "all are done\n"
    code, output = manager.wait()
    assert code == 0, output


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_one_that_fails_ends_all(build: Build, manage: Manage, language: str) -> None:
    host = build("light", language)
    manager = manage(ring())
    hosted = manager.run(host, "fail")
    assert hosted.returncode != 0
    assert "the ice is too thin" in hosted.stderr
    code, output = manager.wait()
    assert code == 1, output
    assert "First:    cell_3" in output, output


@pytest.mark.parametrize("language", ["c", "f90"])
def test_an_event_loop_polls_a_descriptor(build: Build, manage: Manage, language: str) -> None:
    host = build("polled", language)
    manager = manage(PAIR)
    polled = manager.run(host)
    assert polled.returncode == 0, polled.stderr
    code, output = manager.wait()
    assert code == 0, output


def test_an_opening_that_is_given_up_fails_the_run(build: Build, manage: Manage) -> None:
    polled = build("polled", "c")
    manager = manage(PAIR)
    environment = os.environ | {"TITIN_MANAGER": str(manager.connection)}
    with subprocess.Popen([polled, "give up"], env=environment, stdin=subprocess.PIPE) as process:
        code, output = manager.wait()
        assert process.poll() is None, "it lives on, and holds nobody up"
    assert process.returncode == 0
    assert code == 1, output
    assert "let go of the instance before it had joined the run" in output
