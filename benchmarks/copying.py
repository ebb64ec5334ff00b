"""Copying files to another host: `titin copy` beside `scp -r`, `rsync -a`, `tar` through `ssh`, and a bare path.

The hosts are network namespaces, and OpenSSH serves at the other one, with its own settings. The environment variable
``TITIN_COPYING`` chooses parts: a line (``near`` or ``far``), or a line and what is copied, such as ``far/large``.
``TITIN_COPYING_ROUNDS`` allows for a shorter measurement, and ``TITIN_COPYING_PLACE`` names another folder for all
files than the one in memory.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import itertools
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import harness, native
from benchmarks.harness import KIB, MIB, Record, compare, run, scratch
from benchmarks.sites import NAME, Site, inside, line, prepare

#: The environment variables that choose parts, the number of rounds, and the folder for all files.
VARIABLE, ROUNDS, PLACE = "TITIN_COPYING", "TITIN_COPYING_ROUNDS", "TITIN_COPYING_PLACE"
QUESTION = "Copying files to another host, the whole command"
AGAIN = "Copying files to another host once more, nothing has changed"
RATE = "Copying a large file to another host, less the time of a command that copies nothing"

SCP, RSYNC, TAR, BARE = "scp -r", "rsync -a", "tar through ssh", "the bare path"
#: A faster cipher than the default of OpenSSH, which a user would have to know.
CIPHER = "aes128-gcm@openssh.com"
RSYNC_CIPHER = "rsync -a, AES-GCM"

#: Ratios to reach: to scp for small files, to the bare path and, far away, to rsync for the large file.
TO_SCP, TO_BARE, TO_RSYNC = 0.1, 1 / 0.95, 0.2
#: A contender that took so many seconds is not run again.
PATIENCE = 300.0
PORTS = itertools.count(4800)

#: What a contender gives in a round: seconds by question.
Figure = dict[str, float]


@dataclass
class Line:
    """A line between the two hosts, in words, and the sizes of what goes over it."""

    text: str
    #: Opens the line, with a site at each end.
    open: Callable[[], contextlib.AbstractContextManager[Sequence[Site]]]
    #: The bytes of the large file.
    large: int


@contextlib.contextmanager
def direct() -> Iterator[list[Site]]:
    """Two namespaces that a pair of devices joins: a line without a delay, as fast as the processors."""
    one, other = f"{NAME}A", f"{NAME}B"
    commands = [
        f"ip netns add {one}",
        f"ip netns add {other}",
        f"ip -n {one} link add wan0 type veth peer name wan0 netns {other}",
        f"ip -n {one} addr add 10.71.0.1/24 dev wan0",
        f"ip -n {other} addr add 10.71.0.2/24 dev wan0",
        *(f"ip -n {name} link set {device} up" for name in (one, other) for device in ("lo", "wan0")),
    ]
    try:
        for command in commands:
            subprocess.run(command.split(), check=True)
        yield [Site("north", "", "10.71.0.1:0", inside(one)), Site("south", "", "10.71.0.2:0", inside(other))]
    finally:
        for name in (one, other):
            subprocess.run(["ip", "netns", "del", name], check=False)


LINES = {
    "near": Line("no delay", direct, 4 * KIB * MIB),
    "far": Line("37.6 ms, 0.01 %, cubic", lambda: line(NAME, 37.6, 0.01, "cubic"), 256 * MIB),
}


def small(folder: Path, _: Line, share: int) -> str:
    """Files of 10 kB, in folders of 100."""
    count = 10_000 // share
    fill(folder, [10_000] * count, 100)
    return f"{count:,} files of 10 kB"


def large(folder: Path, between: Line, share: int) -> str:
    """A single file."""
    size = between.large // share
    fill(folder, [size], 1)
    return f"a file of {harness.named(size)}"


def mixed(folder: Path, _: Line, share: int) -> str:
    """Files of 1 B to 4 MiB in folders within folders: as many of 1 to 10 kB as of 10 to 100."""
    count = 1_000 // share
    draw = random.Random(1)
    fill(folder, [int((4 * MIB) ** draw.random()) for _ in range(count)], 10)
    return f"{count:,} files of 1 B to 4 MiB"


TREES: dict[str, Callable[[Path, Line, int], str]] = {"small": small, "large": large, "mixed": mixed}


def fill(folder: Path, sizes: Sequence[int], together: int) -> None:
    """Makes files with random bytes of these sizes, so many in a folder; a folder has up to ten others."""
    for number, size in enumerate(sizes):
        place = folder.joinpath(*str(number // together))
        place.mkdir(parents=True, exist_ok=True)
        with (place / f"file-{number}").open("wb") as file:
            for at in range(0, size, 16 * MIB):
                file.write(os.urandom(min(16 * MIB, size - at)))


def main(quick: bool) -> list[Record]:
    """Measures the chosen parts. Records of other parts are kept."""
    prepare("/usr/sbin/sshd:openssh-server", "scp:openssh-client", "rsync:rsync", "tar:tar")
    parts: dict[str, Callable[[bool], list[Record]]] = {
        f"{name}/{tree}": lambda quick, between=between, tree=tree: copies(between, tree, quick)  # type: ignore[misc]
        for name, between in LINES.items()
        for tree in TREES
    }
    return harness.in_parts("copying", VARIABLE, parts, "", quick)


def copies(between: Line, tree: str, quick: bool) -> list[Record]:
    """Copies of one tree over one line by each contender in turn."""
    rounds, share = (1, 20) if quick else (int(os.environ.get(ROUNDS, "5")), 1)
    with (
        scratch(Path(os.environ.get(PLACE, "/dev/shm"))) as name,
        between.open() as ends,
        server(Path(name), ends) as far,
    ):
        folder = Path(name)
        source = folder / "source"
        words = TREES[tree](source, between, share)
        contenders: dict[str, Callable[[], Figure]] = {
            "titin": Copy(far, source, [native.TITIN, "copy", "--titin", native.TITIN, "--ssh", far.ssh], again=True),
            SCP: Copy(far, source, ["scp", "-q", "-r", "-F", far.config]),
            RSYNC: Copy(far, source, ["rsync", "-a", "-e", far.ssh], again=True),
        }
        if tree == "large":
            contenders[RSYNC_CIPHER] = Copy(far, source, ["rsync", "-a", "-e", f"{far.ssh} -c {CIPHER}"])
            contenders[BARE] = Bare(far, source)
        else:
            contenders[TAR] = Tar(far, source)
        figures: dict[str, list[Figure]] = {name: [] for name in contenders}
        names = list(contenders)
        for number in range(rounds):
            begin = number % len(names)
            for name in names[begin:] + names[:begin]:
                harness.progress(f"round {number + 1}/{rounds}: {name}")
                if all(figure.get(QUESTION, 0) <= PATIENCE for figure in figures[name]):
                    figures[name].append(contenders[name]())
        harness.progress("")
    targets = {"small": {SCP: TO_SCP}, "mixed": {}, "large": {RSYNC: TO_RSYNC} if between is LINES["far"] else {}}[tree]
    return records(f"{between.text}, {tree}: {words}", figures, targets)


def records(case: str, figures: Mapping[str, Sequence[Figure]], targets: Mapping[str, float]) -> list[Record]:
    """The records of a tree and a line. A rival may have fewer rounds than titin.

    What `ssh` takes to start the other end is no matter of the rate: the bare path stands beside the copy less that.
    """
    found = []
    if BARE in figures:
        rates = [figure[QUESTION] - figure[AGAIN] for figure in figures["titin"]]
        pairs = list(zip(rates, (figure[RATE] for figure in figures[BARE])))
        found.append(compare(RATE, case, pairs, rival=BARE, unit="s", target=TO_BARE))
    for question in (QUESTION, AGAIN):
        ours = [figure[question] for figure in figures["titin"]]
        for rival, of_rival in figures.items():
            theirs = [figure[question] for figure in of_rival if question in figure]
            if rival == "titin" or not theirs:
                continue
            target = targets.get(rival) if question == QUESTION else None
            pairs, alone = list(zip(ours, theirs)), ours[len(theirs) :]
            found.append(compare(question, case, pairs, alone=alone, rival=rival, unit="s", target=target))
    return found


@dataclass
class Far:
    """The other host, as `ssh` finds it: the commands that enter either host, and the file of settings."""

    ends: Sequence[Site]
    config: Path
    key: Path

    @property
    def ssh(self) -> str:
        """The command for `ssh` with the settings."""
        return f"ssh -F {self.config}"


@contextlib.contextmanager
def server(folder: Path, ends: Sequence[Site]) -> Iterator[Far]:
    """Has OpenSSH serve at the second end, with keys of its own. The first end may log in to the host ``far``."""
    state = folder / "ssh"
    state.mkdir(mode=0o700)
    for key in ("host", "user"):
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", state / key], folder)
    host = ends[1].host
    serving = {
        "ListenAddress": f"{host}:22",
        "HostKey": state / "host",
        "AuthorizedKeysFile": state / "user.pub",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "Subsystem": "sftp internal-sftp",
    }
    asking = {
        "HostName": host,
        "User": getpass.getuser(),
        "IdentityFile": state / "user",
        "UserKnownHostsFile": state / "known",
        "BatchMode": "yes",
    }
    (state / "sshd.conf").write_text("".join(f"{name} {value}\n" for name, value in serving.items()))
    (state / "ssh.conf").write_text("Host far\n" + "".join(f"  {name} {value}\n" for name, value in asking.items()))
    (state / "known").write_text(f"{host} {(state / 'host.pub').read_text()}")
    run([native.TITIN, "path", "key", state / "key"], folder)
    # The server wants an empty folder of this name, which a package makes only when it starts its own server.
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with (state / "log").open("w") as log:
        command = [*ends[1].front, "/usr/sbin/sshd", "-D", "-e", "-f", state / "sshd.conf"]
        sshd = subprocess.Popen(list(map(str, command)), stderr=log)
    try:
        far = Far(ends, state / "ssh.conf", state / "key")
        for _ in range(100):
            done = subprocess.run([*ends[0].front, *far.ssh.split(), "far", "true"], capture_output=True, check=False)
            if done.returncode == 0:
                break
            time.sleep(0.1)
        else:
            raise SystemExit(f"ssh does not reach the server: {done.stderr.decode()}\n{(state / 'log').read_text()}")
        yield far
    finally:
        sshd.terminate()
        sshd.wait()


@dataclass
class Copy:
    """A command that copies: the seconds that it takes into an empty folder and, with ``again``, those that it takes
    once more."""

    far: Far
    source: Path
    command: Sequence[object]
    again: bool = False
    #: Whether a copy was compared with its source. The first one is.
    is_checked: bool = field(default=False, init=False)

    def __call__(self) -> Figure:
        """Copies once or twice."""
        target = self.source.parent / "target"
        target.mkdir()
        try:
            figure = {QUESTION: self.seconds(target)}
            if not self.is_checked:
                check(self.source, target / self.source.name, " ".join(map(str, self.command[:3])))
                self.is_checked = True
            if self.again:
                figure[AGAIN] = self.seconds(target)
        finally:
            shutil.rmtree(target)
        return figure

    def seconds(self, target: Path) -> float:
        """Copies the source into the target, from start to end."""
        return timed([*self.far.ends[0].front, *self.command, self.source, f"far:{target}/"], self.source.parent)


@dataclass
class Tar(Copy):
    """An archive that one `tar` writes to `ssh`, and another one unpacks."""

    command: Sequence[object] = ("tar",)

    def seconds(self, target: Path) -> float:
        """The same by way of a shell."""
        pack = f"tar -C {self.source.parent} -cf - {self.source.name}"
        text = f"{pack} | {self.far.ssh} far tar -C {target} -xf -"
        return timed([*self.far.ends[0].front, "bash", "-o", "pipefail", "-c", text], self.source.parent)


@dataclass
class Bare:
    """A program that sends the only file of the source by a path, and one that receives it into memory."""

    far: Far
    source: Path

    def __call__(self) -> Figure:
        """Sends the file."""
        here, there = self.far.ends
        program, environment = native.build("paths_file"), {"TITIN_PATH_KEY": str(self.far.key)}
        [file] = (path for path in self.source.rglob("*") if path.is_file())
        place, times = f"{there.host}:{next(PORTS)}", self.source.parent / "times"
        times.unlink(missing_ok=True)
        receiving = [*there.front, program, "receive", place, file.stat().st_size]
        with subprocess.Popen(list(map(str, receiving)), env=os.environ | environment) as other:
            try:
                run([*here.front, program, "send", place, file, times], self.source.parent, **environment)
                if other.wait(60):
                    raise SystemExit("the program that receives has failed")
            finally:
                other.kill()
        return {RATE: native.times(times)[0] / 1e6}


def timed(command: Sequence[object], folder: Path) -> float:
    """The seconds that a command takes."""
    begin = time.perf_counter()
    run(command, folder)
    return time.perf_counter() - begin


def check(source: Path, copy: Path, who: str) -> None:
    """Compares the names and the bytes of two trees."""
    one, other = sums(source), sums(copy)
    if one != other:
        missing = sorted(one.keys() ^ other.keys()) or [name for name in one if one[name] != other[name]]
        raise SystemExit(f"{who} has copied {len(missing)} files wrongly, such as {missing[0]}")


def sums(folder: Path) -> dict[str, str]:
    """The hashes of the files in a folder, by their names there."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                found[str(path.relative_to(folder))] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
