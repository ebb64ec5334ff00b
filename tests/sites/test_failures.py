"""However a program, an agent, a guard or a host fails, the run ends, names the culprit, and leaves nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..conftest import TITIN, begin_and_parent
from .conftest import HOSTS

#: Two programs that call each other until something ends them. The first finishes when there is a file `finish`, and
#: ends when there is a file `end`.
CALLS = """\
import os, sys, time
from pathlib import Path
import titin

first = sys.argv[1] == "a"
ports = {"o_i": ["out"], "s": ["back"]} if first else {"f_init": ["in"], "o_f": ["out"]}
with titin.Instance(**ports) as instance:
    while instance.reuse():
        for step in range(100_000) if first else [0]:
            if first:
                instance.send("out", step, timestamp=float(step))
                instance.receive("back")
                time.sleep(0.01)
                Path("running").touch()
                if Path("finish").exists():
                    break
            else:
                instance.receive("in")
                instance.send("out", step, timestamp=0.0)
while first and not Path("end").exists():
    time.sleep(0.01)
"""

MODEL = """\
ymmsl_version: v0.2
models:
  calls:
    components:
      a: {{description: calls, ports: {{o_i: out, s: back}}, implementation: a}}
      b: {{description: answers, ports: {{f_init: in, o_f: out}}, implementation: b}}
    conduits: {{a.out: b.in, b.out: a.back}}
programs:
  a: {{executable: {python}, args: [{folder}/calls.py, a]}}
  b: {{executable: {python}, args: [{folder}/calls.py, b]}}
titin: {{hosts: {{n2: {{components: [a]}}, n3: {{components: [b]}}}}, heartbeat: 3 s}}
"""


@dataclass
class Calls:
    """A run of two programs on the hosts n2 and n3."""

    folder: Path
    process: subprocess.Popen[str]

    def await_running(self) -> None:
        """Waits until the programs have called each other."""
        while not (self.folder / "run/instances/a/workdir/running").exists():
            assert self.process.poll() is None, self.process.communicate()[0]
            time.sleep(0.02)

    def processes(self, *words: str) -> list[int]:
        """The processes of this run, on all hosts, whose command lines have these words in this order.

        The processes are in the order of their begin.
        """
        parents, commands, begun = {}, {}, {}
        for entry in Path("/proc").iterdir():
            try:
                begun[int(entry.name)], parents[int(entry.name)] = begin_and_parent(entry)
                commands[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (OSError, ValueError):
                continue

        def is_below(pid: int) -> bool:
            while pid in parents and pid != self.process.pid:
                pid = parents[pid]
            return pid == self.process.pid

        pattern = re.compile(".*".join(map(re.escape, words)))
        found = [pid for pid, command in commands.items() if pattern.search(command) and is_below(pid)]
        return sorted(found, key=lambda pid: (begun[pid], pid))

    def signal(self, number: signal.Signals, *words: str) -> None:
        """Sends a signal to the process whose command line has these words; to the latest if there are several."""
        os.kill(self.processes(*words)[-1], number)

    def wait(self, code: int = 1) -> str:
        """Waits for the end of the run, with this exit code; returns what it has printed, as one line."""
        output = self.process.communicate(timeout=60)[0]
        assert self.process.returncode == code, output
        assert list((self.folder / "run").glob("connection.json*")) == []
        assert "left behind: nothing" in output, output
        return " ".join(output.split())


#: Looks on all hosts for what is left of a run. The first host sees the processes of all. A host without a network
#: hears of the end by the silence of the manager.
LOOK = """\
"$@"; code=$?
for _ in $(seq 100); do
	left=$(pgrep -fa '[t]itin (agent|guard)|calls[.]py'
		for server in $(pgrep -x dropbear) self; do ls -d /proc/$server/root/dev/shm/titin-* 2>/dev/null; done)
	[ -n "$left" ] || break
	sleep 0.1
done
echo "left behind: ${left:-nothing}"
exit $code
"""


@pytest.fixture
def calls(namespaces: None, tmp_path: Path) -> Iterator[Callable[..., Calls]]:
    runs = []

    def start(before: str = "true") -> Calls:
        (tmp_path / "calls.py").write_text(CALLS)
        (tmp_path / "look.sh").write_text(f"{before}\n{LOOK}")
        (tmp_path / "model.ymmsl").write_text(MODEL.format(python=sys.executable, folder=tmp_path))
        command = ["sh", tmp_path / "look.sh", TITIN, "run", "model.ymmsl", "--run-dir", tmp_path / "run"]
        process = subprocess.Popen(
            [HOSTS, "3", *command],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        runs.append(Calls(tmp_path, process))
        return runs[-1]

    yield start
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait()


Start = Callable[..., Calls]


@pytest.mark.parametrize(("name", "host"), [("a", "n2"), ("b", "n3")])
def test_a_killed_program_is_named(calls: Start, name: str, host: str) -> None:
    run = calls()
    run.await_running()
    run.signal(signal.SIGKILL, f"calls.py {name}")
    assert f"First: {name} on host {host} was ended by SIGKILL" in run.wait()


@pytest.mark.parametrize("host", ["n2", "n3"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_ended_agent_is_named(calls: Start, host: str, number: signal.Signals) -> None:
    run = calls()
    run.await_running()
    run.signal(number, f"titin agent --host {host}")
    if number == signal.SIGKILL:
        assert f"First: the agent of host {host} has ended or is cut off" in run.wait()
    else:
        # As a batch system ends a job.
        assert f"First: the user ended the run (SIGTERM to the agent of host {host})" in run.wait(130)


@pytest.mark.parametrize("host", [0, 1, 2])
def test_a_killed_guard_is_named(calls: Start, host: int) -> None:
    run = calls()
    run.await_running()
    guards = run.processes("titin guard ", "/dev/shm/titin-")
    assert len(guards) == 3
    os.kill(guards[host], signal.SIGKILL)
    said = run.wait()
    assert "First: the guard was ended by SIGKILL" in said or "had a guard that was ended by SIGKILL" in said


def test_a_killed_manager_takes_all_hosts_along(calls: Start) -> None:
    run = calls()
    run.await_running()
    run.signal(signal.SIGKILL, "titin run")
    output = run.process.communicate(timeout=60)[0]
    assert "left behind: nothing" in output, output


@pytest.mark.parametrize("is_off", [False, True], ids=["its network is down", "it loses power"])
def test_a_host_that_disappears_is_named(calls: Start, is_off: bool) -> None:
    run = calls()
    run.await_running()
    first, server = run.processes("look.sh")[0], run.processes("dropbear", "n3.pid")[0]
    inside = ["nsenter", f"--target={first}", "--net", "--mount"]
    down, gone = [["link", "set", "to-n3", "down"]], [["link", "delete", "to-n3"], ["netns", "delete", "n3"]]
    for action in gone if is_off else down:
        subprocess.run([*inside, "ip", *action], check=True)
    if is_off:
        # All processes of the host end with its first.
        os.kill(server, signal.SIGKILL)
    assert "First: the agent of host n3 was silent for 3" in run.wait()


def test_an_interrupt_ends_all_hosts(calls: Start) -> None:
    run = calls()
    run.await_running()
    run.signal(signal.SIGTERM, "titin run")
    output = run.process.communicate(timeout=60)[0]
    assert run.process.returncode == 130, output
    assert "left behind: nothing" in output, output


@pytest.mark.parametrize("ends", [True, False], ids=["ctrl_c", "patience"])
def test_an_agent_that_does_not_answer_at_the_end_fails_the_run(calls: Start, ends: bool) -> None:
    run = calls()
    run.await_running()
    workdir, log = run.folder / "run/instances/a/workdir", run.folder / "run/titin_manager.log"
    (workdir / "finish").touch()
    while run.processes("calls.py b"):
        time.sleep(0.02)
    time.sleep(0.3)
    run.signal(signal.SIGSTOP, "titin agent", "n3")
    (workdir / "end").touch()
    while "waits for host n3: nothing has come from there for" not in log.read_text():
        assert run.process.poll() is None, run.process.communicate()[0]
        time.sleep(0.05)
    if ends:
        run.signal(signal.SIGINT, "titin run")
    while "Left:" not in log.read_text():
        assert run.process.poll() is None, run.process.communicate()[0]
        time.sleep(0.05)
    # The agent ends once it goes on.
    run.signal(signal.SIGCONT, "titin agent", "n3")
    output = run.wait(130 if ends else 1)
    why = "the user ended the wait for other hosts" if ends else "not all hosts have answered at the end"
    assert f"First: all instances are done, but {why}" in output, output
    assert "Left: nothing has come from host n3 for" in output, output


def test_agents_that_do_not_reach_the_manager_go_with_the_run(calls: Start) -> None:
    # The manager's host answers ssh, and does not answer the agents.
    run = calls("ip rule add ipproto tcp sport 1024-65534 dport 1024-65534 blackhole")
    agent = run.folder / "run/agents/n2.txt"
    while not (agent.exists() and "the manager is not reached yet" in agent.read_text()):
        assert run.process.poll() is None, run.process.communicate()[0]
        time.sleep(0.05)
    run.signal(signal.SIGINT, "titin run")
    run.wait(130)
