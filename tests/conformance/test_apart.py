"""Programs of one host that do not share the whole host: another network, another /dev/shm, another user."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..conftest import TITIN, may_leave
from . import apart, cases
from .test_media import model

CASE = "everything_arrives_as_sent"


pytestmark = pytest.mark.skipif(not may_leave(), reason="namespaces are for root")


def run(folder: Path, who: str, what: str, more: str = "", case: str = CASE) -> subprocess.CompletedProcess[str]:
    """Runs a case with one or both programs apart, and with more lines in the description."""
    path = model(folder, case, cases.CASES.get(case, ""))
    text = path.read_text() + more
    for role in ("sender", "receiver"):
        if who in (role, "both"):
            text = text.replace(
                f"args: [{cases.__file__}, {case}, {role}]",
                f"args: [{apart.__file__}, {what}, {sys.executable}, {cases.__file__}, {case}, {role}]",
            )
    path.write_text(text)
    command = [TITIN, "run", path, "--run-dir", folder / "run"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def play(folder: Path, who: str, what: str, case: str = CASE) -> dict[str, dict[str, Any]]:
    """Runs a case like :func:`run`; returns its conduits, by the receiving ends."""
    done = run(folder, who, what, case=case)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = subprocess.run([TITIN, "profile", folder / "run", "--json"], stdout=subprocess.PIPE, check=True)
    return {conduit["to"]: conduit for conduit in json.loads(shown.stdout)["conduits"]}


@pytest.mark.parametrize("who", ["sender", "receiver", "both"])
def test_memory_is_shared_across_networks(tmp_path: Path, who: str) -> None:
    # The two loopbacks are not connected, so no other medium could carry the messages.
    conduits = play(tmp_path, who, "network")
    assert {conduit["medium"] for conduit in conduits.values()} == {"shm"}
    assert all(conduit["detour"] is None for conduit in conduits.values())


@pytest.mark.parametrize("who", ["sender", "receiver", "both"])
def test_memory_is_shared_with_programs_of_another_user(tmp_path: Path, who: str) -> None:
    # Large messages, so that memory of segments is handed over, too.
    conduits = play(tmp_path, who, "user", "a_message_is_larger_than_the_buffer")
    assert {conduit["medium"] for conduit in conduits.values()} == {"shm"}
    assert all(conduit["detour"] is None for conduit in conduits.values())


@pytest.mark.parametrize("who", ["sender", "receiver", "both"])
def test_whoever_has_a_dev_shm_of_its_own_is_reached_by_tcp(tmp_path: Path, who: str) -> None:
    conduits = play(tmp_path, who, "memory")
    assert {conduit["medium"] for conduit in conduits.values()} == {"tcp"}
    names = {"both": ["sender", "receiver"]}.get(who, [who])
    for conduit in conduits.values():
        assert conduit["detour"].startswith("they do not share /dev/shm: "), conduit
        assert all(name in conduit["detour"] for name in names), conduit
    shown = subprocess.run([TITIN, "profile", tmp_path / "run"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "by tcp, not by shared memory: they do not share /dev/shm: " in shown


def test_without_a_folder_a_program_without_a_network_is_told_what_it_lacks(tmp_path: Path) -> None:
    done = run(tmp_path, "receiver", "alone", "  register_timeout: 5 s\n")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "receiver" in done.stderr and "manager" in done.stderr, done.stderr


def test_a_folder_for_messages_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "receiver", "alone", f"  folder: {tmp_path}/missing\n")
    assert done.returncode != 0 and f"{tmp_path}/missing" in done.stderr, done.stdout + done.stderr


def test_a_pin_to_shared_memory_that_cannot_be_kept_says_why(tmp_path: Path) -> None:
    done = run(tmp_path, "receiver", "memory", "  medium: {receiver.in: shm}\n")
    assert done.returncode == 1, done.stdout + done.stderr
    # The report breaks lines at the width of a page.
    told = " ".join(done.stderr.split())
    assert "is pinned to shm in the description (titin: medium), but " in told, told
    why = "is reached by tcp, since they do not share /dev/shm: receiver did not find the run's meeting place there"
    assert why in told, told
