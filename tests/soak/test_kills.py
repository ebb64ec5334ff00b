"""Campaigns of kills: whichever process dies, and whenever, the run ends at once, names it, and leaves nothing."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..conftest import TITIN
from ..relays.conftest import Relay, wait_until
from ..sites.conftest import HOSTS, namespaces
from ..sites.test_failures import CALLS, LOOK, MODEL
from .conftest import PAIR, Process, Soak, amount, chosen_seed, note, print_and_check_memory, processes_below

__all__ = ["namespaces"]

pytestmark = pytest.mark.timeout(7200)

#: How many seconds a run may take to end after a kill, and after a host has lost its network.
LIMIT, LIMIT_OF_HOST = 2, 10

#: What a run says of its first failure, as a pattern, by the kind of the victim. A killed manager says nothing.
CULPRITS = {
    "program": (r"First: {name}( on host \S+( \(site \S+\))?)? was ended by SIGKILL",),
    "agent": ("First: the agent of host {name}",),
    "guard": ("First: the guard was ended by SIGKILL", "had a guard that was ended by SIGKILL"),
    "host": ("First: the agent of host {name} was silent for",),
    "manager": ("",),
}


@dataclass
class Kill:
    """What has followed a kill. The last processes to end are named."""

    victim: str
    seconds: float
    is_named: bool
    last: str
    left: list[str]

    @property
    def is_good(self) -> bool:
        """Whether the run has ended in time, with the name of the victim, and with nothing left."""
        limit = LIMIT_OF_HOST if self.victim.startswith("host") else LIMIT
        return self.is_named and not self.left and self.seconds <= limit


class Campaign:
    """Kills at random, and what has followed each."""

    def __init__(self) -> None:
        """No kills yet."""
        self.chance = random.Random(chosen_seed())
        self.count = int(amount("KILLS", 200)) // 2
        self.kills: list[Kill] = []

    def choose(self, known: set[Process], victims: Sequence[str]) -> tuple[str, int]:
        """One of the victims, and its process among those known; none for a host."""
        roles = {process.role for process in known}
        victim = self.chance.choice([victim for victim in victims if victim in roles or victim.startswith("host")])
        if victim.startswith("host"):
            return victim, 0
        process = self.chance.choice(sorted(process for process in known if process.role == victim))
        if victim == "guard":
            victim += " of the manager" if "--connection" in process.command else " of an agent"
        return victim, process.pid

    def watch(self, victim: str, root: int, known: set[Process], said: Callable[[], str]) -> Kill:
        """Waits until all processes of a run are gone, for a minute at most. Then looks at what the run has said."""
        began, last = time.monotonic(), ""
        while alive := [process.role for process in known if process.role and process.is_alive]:
            if time.monotonic() > began + 60:
                break
            last = ", ".join(alive)
            time.sleep(0.02)
            # Processes may start others while they end.
            known |= set(processes_below(root))
        seconds = time.monotonic() - began
        kind, _, name = victim.partition(" ")
        text = " ".join(said().split())
        is_named = any(re.search(words.format(name=re.escape(name)), text) for words in CULPRITS[kind])
        self.kills.append(Kill(victim, seconds, is_named, last, alive))
        return self.kills[-1]

    def note(self, kill: Kill, folder: Path, said: str) -> None:
        """Removes the files of a run if all was well after a kill, and prints the kill otherwise."""
        if kill.is_good:
            shutil.rmtree(folder)
        else:
            print(f"\n{folder}: {kill}\n{said}")

    def report(self) -> None:
        """Prints and notes what has followed the kills, by victim."""
        by_victim = {}
        for victim in sorted({kill.victim for kill in self.kills}):
            kills = [kill for kill in self.kills if kill.victim == victim]
            seconds = [kill.seconds for kill in kills]
            limit = LIMIT_OF_HOST if victim.startswith("host") else LIMIT
            by_victim[victim] = {
                "times": len(kills),
                "median": round(statistics.median(seconds), 2),
                "longest": round(max(seconds), 2),
                "late": sum(one > limit for one in seconds),
                "not_named": sum(not kill.is_named for kill in kills),
                "left": sum(bool(kill.left) for kill in kills),
            }
            print(f"{victim}: {by_victim[victim]}")
        note(kills=by_victim)

    def check(self) -> None:
        """Fails if a run has not ended as it should."""
        bad = [kill for kill in self.kills if not kill.is_good]
        assert not bad, f"{len(bad)} of {len(self.kills)} kills"


def kill_at_two_sites(campaign: Campaign, folder: Path, relays: Sequence[Relay]) -> dict[str, int]:
    """Kills a process of a run over two sites. Returns the largest memory of each."""
    folder.mkdir()
    chance = campaign.chance
    soak = Soak(folder, relays)
    try:
        soak.begin_flow(PAIR, most=chance.choice([100, 10_000, 1_000_000]), pause=chance.choice([0, 0.02]))
        assert soak.process and soak.memory
        if chance.random() < 0.7:
            soak.await_programs()
        else:
            # Something is killed while the run begins.
            wait_until(lambda: soak.find("manager"), "there is no manager")
        time.sleep(chance.uniform(0, 1))
        known = set(processes_below(soak.process.pid))
        places = {Path(word) for one in known for word in one.command.split() if word.startswith("/dev/shm/titin-")}
        victim, pid = campaign.choose(
            known, ["program a0", "program b0", "agent at-south", "manager", "guard", "guard"]
        )
        os.kill(pid, signal.SIGKILL)
        kill = campaign.watch(victim, soak.process.pid, known, lambda: soak.said)
        kill.left += [str(place) for place in places if place.exists()]
    finally:
        soak.close()
    campaign.note(kill, folder, soak.said)
    return soak.memory.largest


def test_kills_at_two_sites(near_soak: Soak) -> None:
    campaign = Campaign()
    largest: dict[str, int] = {}
    try:
        for index in range(campaign.count):
            found = kill_at_two_sites(campaign, near_soak.folder / f"kill-{index}", near_soak.relays)
            largest |= {role: max(size, largest.get(role, 0)) for role, size in found.items()}
    finally:
        campaign.report()
    print_and_check_memory(largest)
    for relay in near_soak.relays:
        wait_until(lambda relay=relay: not relay.status["runs"], f"{relay.site} still has runs")
        wait_until(
            lambda relay=relay: not any(peer["circuits"] for peer in relay.status["peers"]),
            f"{relay.site} still has circuits",
        )
    campaign.check()


def kill_at_three_hosts(campaign: Campaign, folder: Path) -> None:
    """Kills a process of a run over three hosts of a site, or takes the network from a host."""
    folder.mkdir()
    (folder / "calls.py").write_text(CALLS)
    (folder / "look.sh").write_text(LOOK)
    # The usual heartbeat decides how soon a host counts as lost.
    model = MODEL.format(python=sys.executable, folder=folder).replace(", heartbeat: 3 s", "")
    (folder / "model.ymmsl").write_text(model)
    command = ["sh", folder / "look.sh", TITIN, "run", "model.ymmsl", "--run-dir", folder / "run"]
    out, running = folder / "out", folder / "run/instances/a/workdir/running"
    with out.open("w") as file:
        run = subprocess.Popen([HOSTS, "3", *command], cwd=folder, stdout=file, stderr=file)
    try:
        wait_until(lambda: running.exists() or run.poll() is not None, "the programs do not run", 60)
        assert run.poll() is None, out.read_text()
        time.sleep(campaign.chance.uniform(0, 1))
        known = set(processes_below(run.pid))
        victim, pid = campaign.choose(
            known, ["program a", "program b", "agent n2", "agent n3", "manager", "guard", "guard", "host n3"]
        )
        if pid:
            os.kill(pid, signal.SIGKILL)
        else:
            first = next(process.pid for process in known if process.command.startswith(f"sh {folder}/look.sh"))
            cut = ["ip", "link", "set", "to-n3", "down"]
            subprocess.run(["nsenter", f"--net=/proc/{first}/ns/net", *cut], check=True)
        kill = campaign.watch(victim, run.pid, known, out.read_text)
        run.wait(60)
    finally:
        run.kill()
        run.wait()
    # The script of the first host looks for what is left on all of them.
    left = out.read_text().rpartition("left behind: ")[2].strip()
    kill.left += [] if left == "nothing" else [left]
    campaign.note(kill, folder, out.read_text())


def test_kills_at_three_hosts_of_a_site(namespaces: None, tmp_path: Path) -> None:
    campaign = Campaign()
    try:
        for index in range(campaign.count):
            kill_at_three_hosts(campaign, tmp_path / f"kill-{index}")
    finally:
        campaign.report()
    campaign.check()
