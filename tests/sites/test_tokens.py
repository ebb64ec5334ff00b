"""Agents that the user starts by the printed line: its token serves once, on its host, in its time, and in its run."""

from __future__ import annotations

import sys
from pathlib import Path

from ..conftest import TITIN
from .conftest import STAGE, Hosts, chain, printed

#: Begins a run. ``line HOST`` is the latest line that the run has printed for a host, and ``there`` has a shell on n2
#: read lines. No command line has the token.
BEGIN = f"""\
{TITIN} run model.ymmsl --run-dir run >said 2>&1 &
run=$!
said() {{ until grep -q "$1" said; do sleep 0.05; done; }}
line() {{ said "on $1:"; sed -n "s/^ *on $1: *//p" said | tail -1; }}
there() {{ {{ echo 'cd /; PATH={TITIN.parent}:$PATH'; cat; }} | ssh n2 sh; echo "agent: $?"; }}
"""

#: Waits for the end of the run, and of the agents.
END = "wait $run; code=$?; wait; cat said; exit $code\n"


def by_hand(hosts: Hosts, folder: Path, script: str, **env: str) -> str:
    """Runs a script beside the run, on n1, and returns what the two have said. The run ends well."""
    (folder / "by_hand.sh").write_text(BEGIN + script + END)
    done = hosts(2, "sh", "by_hand.sh", **env)
    assert done.returncode == 0, done.stdout
    return " ".join(done.stdout.split())


def test_a_printed_line_starts_an_agent_without_any_file_of_the_run(hosts: Hosts, tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b"], "hosts: {localhost: {components: [a]}, box: {start: by hand, components: [b]}}")
    run = tmp_path / "run"
    run.mkdir()
    said = by_hand(hosts, tmp_path, f"line box | there\nssh n2 ls {run} | wc -l\n", HIDDEN=str(run))
    assert "agent: 0 0 run directory" in said
    assert printed(tmp_path, "a", "b") == ["n1 0", "n2 1"]
    assert "the token of host box has served an agent on n2" in (run / "titin_manager.log").read_text()


#: Gives the token of a line another number, as that of another run, and the checksum that belongs to it.
RENUMBER = """\
import hashlib, re, sys
line = sys.stdin.read()
digits = re.search("[0-9a-f]{99,}", line)[0]
changed = bytes.fromhex(re.sub("626572cf.{8}", "626572cf00000000", digits[:-8]))
print(line.replace(digits, (changed + hashlib.sha256(changed).digest()[:4]).hex()))
"""


def test_a_token_serves_once_on_its_host_and_in_its_run(hosts: Hosts, tmp_path: Path) -> None:
    chain(
        tmp_path,
        ["a", "b", "c"],
        "hosts: {localhost: {components: [a]}, box: {start: by hand, components: [b]}, "
        "last: {start: by hand, components: [c]}}",
    )
    (tmp_path / "renumber.py").write_text(RENUMBER)
    said = by_hand(
        hosts,
        tmp_path,
        "line box | sed 's/--token/--token --host last/' | there\n"
        f"line box | {sys.executable} renumber.py | there\n"
        # The last digit of the token is wrong.
        "line box | sed 's/. |/x |/' | there\n"
        "line box | sed 's/echo ../echo /' | there\n"
        # The agent gets the secret, and then cannot begin.
        "{ echo 'mount -o remount,ro /dev/shm'; line box; } | there\n"
        "old=$(line box)\n"
        'until [ "$(line box)" != "$old" ]; do echo "$old" | there; sleep 0.5; done\n'
        "{ echo 'mount -o remount,rw /dev/shm'; line box; } | there &\n"
        "said 'host box is ready'\n"
        "line box | there\n"
        "line last | there\n",
    )
    assert printed(tmp_path, "a", "b", "c") == ["n1 0", "n2 1", "n2 2"]
    log = (tmp_path / "run/titin_manager.log").read_text()
    other = "its token is of host box, and it was started with --host last"
    assert f"the manager does not let this agent in: {other}" in said
    assert f"an agent on n2 is not let in: {other}" in log
    assert "an agent is not let in: its token is of no host of this run" in log
    assert said.count("standard input has no token of a run") == 2
    assert "cannot make a folder in /dev/shm" in said
    refused = said.count("the manager does not take the token: it has served already, or is of another run")
    # One token is of no host, and the others have served.
    assert log.count("an agent is not let in: the token of host box has served already") == refused - 1 >= 2
    assert log.count("the token of host box has served an agent on n2") == 2
    # The run gives another token for the one that has served in vain, and for no other.
    assert (said.count("on box: echo"), said.count("on last: echo")) == (2, 1)
    assert said.count("agent: 0") == 2
    assert said.count("agent: 2") == refused + 4


def test_a_token_does_not_serve_after_its_time(hosts: Hosts, tmp_path: Path) -> None:
    """The host has got its agent in another way, so the run goes on when the time is over."""
    chain(
        tmp_path,
        ["a", "b"],
        "hosts: {localhost: {components: [a]}, box: {start: by hand, components: [b]}}\nregister_timeout: 8 s",
    )
    begin = "    while instance.reuse():\n"
    wait = (
        f"        while not receives and not os.path.exists({str(tmp_path / 'go')!r}):\n            time.sleep(0.02)\n"
    )
    stage = STAGE.replace("import os, sys", "import os, sys, time")
    (tmp_path / "stage.py").write_text(stage.replace(begin, begin + wait))
    said = by_hand(
        hosts,
        tmp_path,
        f"said 'on box:'; ssh -n n2 {TITIN} agent --host box {tmp_path}/run/connection.json &\n"
        "said 'host box is ready'; sleep 8; line box | there; touch go\n",
    )
    assert printed(tmp_path, "a", "b") == ["n1 0", "n2 1"]
    why = "the token of host box has expired after 8.0 s"
    assert f"the manager does not let this agent in: {why}" in said
    assert f"an agent on n2 is not let in: {why}" in (tmp_path / "run/titin_manager.log").read_text()


def test_a_host_without_a_network_finds_the_run_by_its_directory(hosts: Hosts, tmp_path: Path) -> None:
    chain(
        tmp_path,
        ["a", "b"],
        "hosts: {localhost: {components: [a]}, box: {start: by hand, components: [b]}}\nmedium: {b.i: file}",
    )
    by_hand(
        hosts,
        tmp_path,
        "ip link set to-n2 down; said 'on box:'\n"
        "inside=\"nsenter --all --target $(pgrep -of '^dropbear.*n2[.]pid')\"\n"
        f"$inside {TITIN} agent --host box {tmp_path}/run/connection.json\n",
    )
    assert printed(tmp_path, "a", "b") == ["n1 0", "n2 1"]
