"""A process that dies, or a host that goes down, ends a run over two sites at once: the patience is for lines alone."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..conftest import begin_and_parent, may_leave
from .conftest import Relay, Sites, two_sites, wait_until


def processes(folder: Path, *words: str) -> list[int]:
    """The processes that belong to the run in a folder, whose command lines have these words in this order.

    The processes are in the order of their begin.
    """
    pattern = re.compile(".*".join(map(re.escape, words)))
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            belongs = str(folder) in command + os.readlink(entry / "cwd")
            if belongs and pattern.search(command):
                found.append((begin_and_parent(entry)[0], int(entry.name)))
    return [pid for _, pid in sorted(found)]


def of_run(folder: Path) -> list[int]:
    """What is left of the run, besides the relays."""
    words = ("exchange.py", "titin agent", "titin guard", "titin run")
    return [pid for word in words for pid in processes(folder, word)]


def begin(sites: Sites) -> subprocess.Popen[str]:
    """Starts the run, and waits until the two programs exchange messages."""
    process = sites.begin()
    wait_until(lambda: len(processes(sites.folder, "exchange.py b")) == 1, "b has not been started")
    wait_until(lambda: sites.north.peer("south")["circuits"] >= 3, "there are no circuits")
    time.sleep(0.5)
    return process


@pytest.mark.parametrize("most", [100, 2_000_000])
@pytest.mark.parametrize(
    ("victim", "said"),
    [
        ("exchange.py a", "First: a was ended by SIGKILL"),
        ("exchange.py b", "First: b on host far (site south) was ended by SIGKILL"),
        ("titin agent --host far", "First: the agent of host far has ended or is cut off"),
        ("titin run", ""),
    ],
    ids=["a", "b", "agent", "manager"],
)
def test_a_killed_process_ends_the_run_at_both_sites(sites: Sites, victim: str, said: str, most: int) -> None:
    sites.write(steps=100_000, most=most, pause=0.0 if most > 100 else 0.01)
    process = begin(sites)
    os.kill(processes(sites.folder, victim)[-1], signal.SIGKILL)
    began = time.monotonic()
    out, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert said in " ".join(out.split()), out
    assert "still runs after the failure" not in out, out
    wait_until(lambda: not of_run(sites.folder), "something is left")
    assert time.monotonic() - began < 20, out


def begin_by_hand(sites: Sites, *shell: str) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    """Starts a run with an agent by hand, and waits until the programs exchange messages. Returns the processes of the
    run, and of the shell of the agent, which the run's guard does not know."""
    sites.write(steps=100_000, most=100, pause=0.01, start="by hand")
    run = sites.begin_by_hand()
    agent = run.start_agent(*shell)
    wait_until(lambda: len(processes(sites.folder, "exchange.py b")) == 1, "b has not been started")
    wait_until(lambda: sites.north.peer("south")["circuits"] >= 3, "there are no circuits")
    return run.process, agent


def test_an_agent_hears_that_the_manager_of_another_site_was_killed(sites: Sites) -> None:
    run, agent = begin_by_hand(sites)
    run.kill()
    began = time.monotonic()
    said, _ = agent.communicate(timeout=60)
    assert agent.returncode == 2, said
    assert "is over: its manager has ended" in " ".join(said.split()), said
    assert time.monotonic() - began < 15, said
    assert run.wait(timeout=60) == -signal.SIGKILL
    wait_until(lambda: not of_run(sites.folder), "something is left")
    wait_until(lambda: not sites.south.status["runs"], "the run is still shown")


def test_an_agent_that_says_that_it_ends_is_not_cut_off(sites: Sites) -> None:
    run, agent = begin_by_hand(sites)
    (pid,) = processes(sites.folder, "titin agent")
    os.kill(pid, signal.SIGTERM)
    agent.communicate(timeout=60)
    assert run.wait(timeout=60) == 1
    said = " ".join((sites.folder / "said").read_text().split())
    assert "First: the agent of host far was ended by SIGTERM, so it ended the programs there" in said, said
    assert "Left:" not in said, said


@pytest.mark.skipif(not may_leave(), reason="a mount that hides a folder is for root")
def test_a_second_signal_ends_an_agent_that_cannot_hand_its_files_over(sites: Sites) -> None:
    hide = f"mount -t tmpfs none {sites.folder}/run && exec sh"
    run, agent = begin_by_hand(sites, "env", f"TMPDIR={sites.folder}", "unshare", "--mount", "sh", "-c", hide)
    sites.line.cut()
    (pid,) = processes(sites.folder, "titin agent")
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not processes(sites.folder, "exchange.py b"), "b has not ended")
    # The files wait for the line.
    time.sleep(2)
    assert agent.poll() is None
    os.kill(pid, signal.SIGTERM)
    said, _ = agent.communicate(timeout=20)
    assert agent.returncode == 2, said
    assert "was ended by SIGTERM" in said
    run.kill()
    run.wait(timeout=60)
    wait_until(lambda: not of_run(sites.folder), "something is left")


def test_ctrl_c_while_the_line_is_away_says_what_may_go_on(sites: Sites) -> None:
    sites.write(steps=100_000, most=100, pause=0.01, more="  grace: 0.1 s\n  patience: 60 s")
    run = begin(sites)
    log = sites.folder / "run/titin_manager.log"
    sites.line.cut()
    wait_until(lambda: "nothing has come from host far" in log.read_text(), "the silence is not told")
    run.send_signal(signal.SIGINT)
    # The programs have some seconds to end; then the run waits for the agent.
    awaited = "waits for host far (site south): nothing has come from there for"
    wait_until(lambda: awaited in log.read_text(), "the wait is not told")
    run.send_signal(signal.SIGINT)
    out = " ".join(run.communicate(timeout=60)[0].split())
    assert run.returncode == 130, out
    assert "SIGKILL was sent" not in out, out
    assert "nobody knows whether process" in out, out
    assert re.search(r"Left: nothing has come from host far \(site south\) for \d+ s: programs may go on", out), out
    sites.line.mend()
    wait_until(lambda: not of_run(sites.folder), "something is left", 60)


@pytest.mark.skipif(not may_leave(), reason="a mount that hides a folder is for root")
def test_ctrl_c_ends_the_wait_for_files(sites: Sites) -> None:
    hide = f'mount -t tmpfs none {sites.folder}/run && exec "$@"'
    start = f"[env, TMPDIR={sites.folder}, unshare, --mount, sh, -c, '{hide}', sh]"
    sites.write(steps=10, most=100, start=start)
    with (sites.folder / "exchange.py").open("a") as program:
        program.write("if not leads:\n    open('large', 'wb').write(bytes(range(256)) * (1 << 18))\n")
    sites.line.pause = 0.05
    run = sites.begin()
    log = sites.folder / "run/titin_manager.log"
    awaited = re.compile(r"waits for the files of host far \(site south\): [1-9][0-9.]* MB have come; Ctrl-C")
    wait_until(lambda: log.exists() and awaited.search(log.read_text()), "the copying is not told")
    run.send_signal(signal.SIGINT)
    out = " ".join(run.communicate(timeout=60)[0].split())
    assert run.returncode == 130, out
    assert "the files of host far have not all come" in out, out
    assert "of b/workdir/large a part had come" in out, out
    assert "Next: Copy what is missing from the folders" in out, out
    assert not (sites.folder / "run/instances/b/workdir/large").exists()
    (folder,) = sites.folder.glob("titin-run-*")
    assert (folder / "instances/b/workdir/large").stat().st_size == 1 << 26
    sites.line.pause = 0
    wait_until(lambda: not of_run(sites.folder), "something is left", 60)


@pytest.fixture
def far_sites(tmp_path: Path, relays: Callable[..., Relay], far_network: tuple[str, str, str]) -> Iterator[Sites]:
    """Two sites. The relay of south is reached by a network that may go away."""
    yield from two_sites(tmp_path, relays, host=far_network[2])


@pytest.mark.parametrize("most", [100, 2_000_000])
def test_a_host_that_goes_down_ends_the_run(far_sites: Sites, far_network: tuple[str, str, str], most: int) -> None:
    sites, (name, near, _) = far_sites, far_network
    sites.write(steps=100_000, most=most, pause=0.01, start=f"[ip, netns, exec, {name}]", more="  patience: 30 s")
    process = begin(sites)
    subprocess.run(["ip", "link", "set", near, "down"], check=True)
    began = time.monotonic()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    told = " ".join(out.split())
    assert "First: the agent of host far has ended or is cut off" in told, out
    assert "Left: host far (site south) may be cut off: programs may then go on there until nothing" in told, out
    assert time.monotonic() - began < 25, out
    # What runs there ends by itself.
    wait_until(lambda: not of_run(sites.folder), "something is left", 60)
