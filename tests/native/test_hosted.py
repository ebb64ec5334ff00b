"""Instances on threads of one program, with vector ports, and user filters in a shared library."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from ..conftest import Manage
from .conftest import Build

MODEL = """\
ymmsl_version: v0.2
description: Two instances of one process.
models:
  hosted:
    components:
      sender:
        description: sends
        ports: {{o_i: out wide}}
        implementation: sender
      receiver:
        description: receives
        ports: {{s: in wide}}
        implementation: receiver
    conduits:
      sender.out: {chain} receiver.in
      sender.wide: late receiver.wide
    matching_timelines: {{sender: receiver}}
settings: {{dt: 0.5 s}}
programs:
  sender: {{executable: {host}}}
  receiver: {{executable: {host}}}
titin:
  filters:
    twice: {{library: {library}, symbol: {symbol}}}
    late: {{library: {library}, symbol: late}}
    counted: {{python: "ours:count"}}
"""


def model(build: Build, language: str, symbol: str = "twice") -> tuple[Path, str]:
    """The host in this language, and the model with filters in the same language."""
    host, library = build("hosted", language), build("filter", language, shared=True)
    # C has the calls by which a program finds its own filters.
    chain = "twice counted" if language == "c" else "twice"
    return host, MODEL.format(host=host, library=library, symbol=symbol, chain=chain)


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_a_host_runs_its_instances_on_threads(build: Build, manage: Manage, language: str) -> None:
    host, text = model(build, language)
    manager = manage(text)
    hosted = manager.run(host)
    assert hosted.returncode == 0, hosted.stderr
    assert hosted.stdout == "both are done\n"
    code, output = manager.wait()
    assert code == 0, output
    assert "all is sent" in (manager.directory / "titin_manager.log").read_text()


def test_a_host_may_know_the_run_by_its_secret(build: Build, manage: Manage) -> None:
    """The secret leaves the environment when the first instance is opened, and serves the other instances too."""
    host, text = model(build, "c")
    manager = manage(text)
    connection = json.loads(manager.connection.read_text())
    hosted = manager.run(host, TITIN_MANAGER=connection["addresses"][0], TITIN_SECRET=connection["secret"])
    assert hosted.returncode == 0, hosted.stderr
    code, output = manager.wait()
    assert code == 0, output


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_a_filter_that_is_not_there_is_named(build: Build, manage: Manage, language: str) -> None:
    host, text = model(build, language, "thrice")
    manager = manage(text)
    hosted = manager.run(host)
    assert hosted.returncode != 0
    assert "twice" in hosted.stderr
    assert "thrice" in hosted.stderr
    code, output = manager.wait()
    assert code == 1, output


def test_an_error_that_a_filter_does_not_look_at_is_one(build: Build, manage: Manage) -> None:
    host, text = model(build, "c", "careless")
    manager = manage(text)
    hosted = manager.run(host)
    assert hosted.returncode != 0
    assert "filter 'twice' failed" in hosted.stderr
    assert "99" in hosted.stderr
    code, output = manager.wait()
    assert code == 1, output


@pytest.mark.parametrize(("language", "how"), list(itertools.product(["c", "cpp", "f90"], ["return", "say"])))
def test_an_instance_that_fails_says_why(build: Build, manage: Manage, language: str, how: str) -> None:
    host, text = model(build, language)
    manager = manage(text)
    hosted = manager.run(host, how)
    assert hosted.returncode != 0
    assert "the ice is too thin" in hosted.stderr
    code, output = manager.wait()
    assert code == 1, output
    assert "First:    receiver" in output, output
    assert "the ice is too thin" in output


def test_the_others_do_not_wait_for_one_that_cannot_be_opened(build: Build, manage: Manage) -> None:
    host, text = model(build, "c")
    manager = manage(text)
    hosted = manager.run(host, "misspelt")
    assert hosted.returncode != 0
    assert "reciever" in hosted.stderr
    code, output = manager.wait()
    assert code == 1, output
    assert "reciever" in output, output
