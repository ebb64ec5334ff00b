"""Messages between two sites that relays join by a long line, beside raw TCP and iperf3.

The line is emulated (`sites`). The messages would compress very well, so compression is off, but for ``compression``.
The environment variable ``TITIN_LINES`` chooses parts: cells such as ``15/0.1/cubic`` (milliseconds of a round trip,
percent of loss, congestion control), ``streams``, ``middle``, ``compression`` and ``loopback``. ``TITIN_LINES_ROUNDS``
and ``TITIN_LINES_LARGEST`` (in bytes) allow for a shorter measurement.
"""

from __future__ import annotations

import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import harness
from benchmarks.harness import PROGRAMS, ROOT, Figures, Record, beside_all, compare, run, scratch, sweep
from benchmarks.sites import NAME, Relays, Site, line, line_in_halves, prepare, process_of, relays

#: The environment variables that choose parts, the number of rounds, and the largest message of a cell.
VARIABLE, ROUNDS, LARGEST = "TITIN_LINES", "TITIN_LINES_ROUNDS", "TITIN_LINES_LARGEST"
QUESTION = "A message over a long line of 1 Gbit/s, one way"
LATENCY = "A message of 1 kB over a long line, one way: what it takes more than half of what ping says"
PROCESSORS = "Processor time of both relays for each Gbit that goes over a long line"
STREAMS = "A message of 64 MB over a long line by the default number of streams, beside fixed numbers"
MIDDLE = "A message over a long line by one stream, with a third relay in its middle"
COMPRESSION = "A message over a long line, compressed where titin finds that it pays"
LOOPBACK = "A message between processes by two relays on the loopback interface, for each Gbit"
LOOPBACK_PROCESSOR = "Processor time of the busier of two relays on the loopback interface, for each Gbit"

KB, MB, GB = 10**3, 10**6, 10**9
SIZES = [KB, 64 * KB, MB, 16 * MB, 64 * MB, 256 * MB, GB]
#: iperf3 sends as many bytes, from this size on; from the second size on it is a target.
LARGE, AIMED = 16 * MB, 64 * MB
PARALLEL = [1, 8, 64]
FIXED = [1, 2, 4, 8, 16, 32, 64, 128]

RAW, PING = "one raw TCP stream", "ping"
#: Bytes of the messages that show the round trip.
SMALL = 8
#: No contender is asked for a larger size after one that took so many seconds.
PATIENCE = 60.0

#: The milliseconds that a small message may take more than half of what ping says.
MORE = 0.3
#: The ratio to the best iperf3, which may have twenty nineteenths of titin's rate; the spread up to which that counts.
BEST, SPREAD = 1 / 0.95, 0.1
#: The ratio to the best fixed number of streams or the better fixed choice, and with a relay in the middle to without.
NEAR_BEST, HALVED = 1.05, 1 / 1.7
#: Seconds of a relay's processor for a Gbit: a core passes on 10 Gbit/s.
CORE = 0.1

MODEL = """\
ymmsl_version: v0.2
description: A ping-pong between two sites.
models:
  pair:
    components:
      here: {{description: sends and times, ports: {{o_i: out, s: in}}, implementation: here}}
      there: {{description: answers, ports: {{o_i: out, s: in}}, implementation: there}}
    conduits: {{here.out: there.in, there.out: here.in}}
programs:
  here: {{executable: {python}, args: {here}}}
  there: {{executable: {python}, args: {there}}}
titin:
  buffer: {{default: {{bytes: 2 GB}}}}
  links: {{default: {{compress: {compress}{streams}}}}}
{places}{more}
"""


@dataclass(frozen=True)
class Cell:
    """A kind of line."""

    rtt: float
    loss: float
    control: str

    def __str__(self) -> str:
        """The name of the cell in `VARIABLE`."""
        return f"{self.rtt:g}/{self.loss:g}/{self.control}"

    @property
    def text(self) -> str:
        """The line in words."""
        return f"{self.rtt:g} ms, {self.loss:g} %, {self.control}"


CELLS = [
    Cell(rtt, loss, control)
    for rtt in (2.1, 15, 37.6, 106, 273)
    for loss in (0, 0.01, 0.1)
    for control in ("cubic", "bbr")
]
#: The lines of `STREAMS`, and the line that `MIDDLE` divides.
OF_STREAMS = [Cell(15, 0.1, "cubic"), Cell(273, 0.01, "cubic")]
DIVIDED = Cell(273, 0.01, "cubic")
#: The line of `COMPRESSION`, and its rates in Mbit/s.
COMPRESSED, RATES = Cell(15, 0, "cubic"), [100, 1000]

#: The contents of messages, and titin and its rivals there with their settings.
CONTENTS = {"field": "a field, half of it one value", "noise": "random bytes"}
COMPRESS = {"titin": "auto", "never compressed": "never", "always compressed": "always"}

#: The ways of `loopback`, each with its lines of the description.
WAYS = {"sealed from end to end": "  encrypt: true", "TLS between the relays alone": "  encrypt: false"}

#: A line of iperf3 about a stream, or about all of several: seconds, and the rate in kbit/s.
INTERVAL = re.compile(r"\[ *(SUM|\d+)\] +([0-9.]+)-([0-9.]+) +sec .* ([0-9.]+) Kbits/sec")

#: What a contender gives in a round: milliseconds by size, and seconds of processor time of a message by name and size.
Figure = dict[int | tuple[str, int], float]


def main(quick: bool) -> list[Record]:
    """Measures the chosen parts. Records of other parts are kept."""
    prepare("iperf3:iperf3", "ping:iputils-ping")
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    parts: dict[str, Callable[[bool], list[Record]]] = {
        str(cell): lambda quick, cell=cell: message(cell, quick)  # type: ignore[misc]
        for cell in CELLS
        if cell.control in known
    }
    parts |= {
        f"streams/{cell}": lambda quick, cell=cell: streams(cell, quick)  # type: ignore[misc]
        for cell in OF_STREAMS
    }
    parts |= {"middle": middle, "compression": compression, "loopback": loopback}
    return harness.in_parts("lines", VARIABLE, parts, "15/0.1/cubic" if quick else "", quick)


def message(cell: Cell, quick: bool) -> list[Record]:
    """Messages of all sizes over one kind of line."""
    sizes = [size for size in SIZES if size <= largest(quick)]
    with scratch() as name, line(NAME, cell.rtt, cell.loss, cell.control) as ends:
        folder = Path(name)
        with relays(folder / "relays", ends, cell.control) as running:
            watched = {"relays": running.names}
            if process := process_of(NAME):
                watched["emulator"] = [process]
            contenders: dict[str, Callable[[], Figure]] = {
                "titin": Relayed(running, sizes, watched=watched),
                RAW: Raw(folder, ends, sizes),
                PING: lambda: {KB: ping(ends)},
            }
            for count in PARALLEL:
                large = [size for size in sizes if size >= LARGE]
                contenders[iperf_name(count)] = Iperf(ends, count, large)
            figures = sweep(rounds(quick), contenders)
    return message_records(cell, sizes, figures)


def message_records(cell: Cell, sizes: Sequence[int], figures: Figures) -> list[Record]:
    """The records of a kind of line."""
    found = []
    ours = figures["titin"]
    pairs = [(time - half, half) for time, half in zip(ours[KB], figures[PING][KB])]
    case = f"{cell.text}: {named(KB)}, more than half of ping"
    found.append(compare(LATENCY, case, pairs, rival="half of ping", unit="ms", limit=MORE))
    for size in sizes:
        if size not in ours:
            continue
        case = f"{cell.text}: {named(size)}"
        if raw := figures[RAW].get(size):
            pairs = list(zip(ours[size], raw))
            found.append(compare(QUESTION, case, pairs, rival=RAW, unit="ms", size=size, target=1.0))
        rivals = {name: figures[name][size] for name in map(iperf_name, PARALLEL) if size in figures[name]}
        if rivals:
            best = min(rivals, key=lambda name: statistics.median(rivals[name]))
            spread = (max(rivals[best]) - min(rivals[best])) / statistics.median(rivals[best])
            for name, times in rivals.items():
                target = BEST if name == best and size >= AIMED and spread <= SPREAD else None
                pairs = list(zip(ours[size], times))
                found.append(compare(QUESTION, case, pairs, rival=name, unit="ms", size=size, target=target))
        if size >= LARGE and ("emulator", size) in ours:
            gigabits = 8 * size / 1e9
            used = zip(ours["relays", size], ours["emulator", size])
            pairs = [(relays / gigabits, emulator / gigabits) for relays, emulator in used]
            # With a size, the table leaves the row out.
            kept = None if size == AIMED else size
            found.append(compare(PROCESSORS, case, pairs, rival="the emulator", unit="s", size=kept))
    return found


def streams(cell: Cell, quick: bool) -> list[Record]:
    """The default number of streams beside fixed ones."""
    with (
        scratch() as name,
        line(NAME, cell.rtt, cell.loss, cell.control) as ends,
        relays(Path(name) / "relays", ends, cell.control) as running,
    ):
        contenders = {"titin": Relayed(running, [AIMED])}
        for count in FIXED:
            contenders[counted(count)] = Relayed(running, [AIMED], streams=count)
        return beside(STREAMS, f"{cell.text}: {named(AIMED)}, default streams", contenders, AIMED, quick)


def beside(
    question: str, case: str, contenders: Mapping[str, Callable[[], Figure]], size: int, quick: bool
) -> list[Record]:
    """The contender titin and others, with messages of one size."""
    figures = sweep(rounds(quick), contenders)
    times = {name: of_size[size] for name, of_size in figures.items()}
    return beside_all(question, case, times, unit="ms", target=NEAR_BEST)


def middle(quick: bool) -> list[Record]:
    """One stream over a line, by the relays at its ends, and by a third relay in its middle.

    A large message: the time of a small one is that of its slow start, which ends by chance.
    """
    size = largest(quick)
    with line_in_halves(DIVIDED.rtt, DIVIDED.loss, DIVIDED.control) as (north, between, south):

        def by(*sites: Site) -> float:
            with scratch() as place, relays(Path(place) / "relays", sites, DIVIDED.control) as running:
                return Relayed(running, [size], streams=1)()[size]

        pairs = harness.alternate(rounds(quick), lambda: by(north, between, south), lambda: by(north, south))
    case = f"{DIVIDED.text}: {named(size)}, one stream, a relay in the middle"
    return [compare(MIDDLE, case, pairs, rival="without the relay in the middle", unit="ms", target=HALVED)]


def compression(quick: bool) -> list[Record]:
    """Messages that compress and messages that do not, with titin's choice and with either choice for all."""
    size, cell = 16 * MB, COMPRESSED
    found = []
    for rate in RATES:
        with (
            scratch() as name,
            line(NAME, cell.rtt, cell.loss, cell.control, rate) as ends,
            relays(Path(name) / "relays", ends, cell.control) as running,
        ):
            for contents, words in CONTENTS.items():
                contenders = {
                    which: Relayed(running, [size], compress=setting, contents=contents)
                    for which, setting in COMPRESS.items()
                }
                case = f"{cell.text}, {rate} Mbit/s: {named(size)}, {words}"
                found += beside(COMPRESSION, case, contenders, size, quick)
    return found


def loopback(quick: bool) -> list[Record]:
    """Messages by two relays of this machine, sealed from end to end or not."""
    size = 256 * MB
    gigabits = 8 * size / 1e9
    with scratch() as name:
        folder = Path(name)
        sites = [Site(which, address(), address()) for which in ("north", "south")]
        with relays(folder / "relays", sites) as running:
            watched = {name: [process] for name, process in zip(("north", "south"), running.names, strict=True)}
            contenders: dict[str, Callable[[], Figure]] = {RAW: Raw(folder, sites, [size], {"sender": ["self"]})}
            for way, more in WAYS.items():
                contenders[way] = Relayed(running, [size], more, watched)
            figures = sweep(2 if quick else 7, contenders)
    found = []
    raw = figures[RAW]
    for way in WAYS:
        ours = figures[way]
        pairs = [(a / 1000 / gigabits, b / 1000 / gigabits) for a, b in zip(ours[size], raw[size])]
        found.append(compare(LOOPBACK, f"{way}: a Gbit", pairs, rival=RAW, unit="s"))
        busier = map(max, ours["north", size], ours["south", size])
        used = [(ours / gigabits, theirs / gigabits) for ours, theirs in zip(busier, raw["sender", size])]
        rival = f"{RAW}, the process that sends"
        case = f"{way}: a relay's processor time for a Gbit"
        found.append(compare(LOOPBACK_PROCESSOR, case, used, rival=rival, unit="s", limit=CORE))
    return found


class Relayed:
    """Runs of titin by relays: the milliseconds of a message one way, by its size, and the processor time for a message
    of the groups of processes that are watched, by their name and the size."""

    def __init__(
        self,
        running: Relays,
        sizes: Sequence[int],
        more: str = "",
        watched: Mapping[str, Sequence[str]] | None = None,
        streams: int | None = None,
        compress: str = "never",
        contents: str = "ones",
    ) -> None:
        """``more`` are lines of the description; ``streams`` sets a number of streams; ``contents`` is the kind of the
        messages' bytes (`lines_play`)."""
        self.running, self.sizes, self.more, self.watched = running, sizes, more, watched or {}
        self.streams = f", streams: {streams}" if streams else ""
        self.compress, self.contents = compress, contents

    def __call__(self) -> Figure:
        """Makes a run."""
        program = PROGRAMS / "lines_titin.py"
        with scratch() as name:
            folder = Path(name)
            arguments = [program, "here", *playing(self.sizes, self.watched, folder / "times"), self.contents]
            model = MODEL.format(
                python=sys.executable,
                here=json.dumps([str(word) for word in arguments]),
                there=json.dumps([str(program), "there"]),
                places=self.running.places(["here"], ["there"]),
                more=self.more,
                streams=self.streams,
                compress=self.compress,
            )
            self.running.titin_run(model, folder)
            self.sizes, figure = one_way(folder / "times", self.sizes, self.watched)
            return figure


class Raw:
    """The same between the front ends, over one raw TCP stream."""

    def __init__(
        self,
        folder: Path,
        sites: Sequence[Site],
        sizes: Sequence[int],
        watched: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """The first site sends."""
        self.folder, self.sites, self.sizes, self.watched = folder, sites, sizes, watched or {}

    def __call__(self) -> Figure:
        """Makes a connection, plays all sizes, and ends the connection."""
        here, there = self.sites
        program = [sys.executable, PROGRAMS / "lines_tcp.py"]
        place = f"{there.host}:4712" if there.front else address()
        times = self.folder / "times"
        with subprocess.Popen([str(word) for word in [*there.front, *program, "there", place]]) as other:
            try:
                run([*here.front, *program, "here", place, *playing(self.sizes, self.watched, times)], self.folder)
            finally:
                other.kill()
        self.sizes, figure = one_way(times, self.sizes, self.watched)
        return figure


class Iperf:
    """iperf3 between the front ends with a number of streams: the milliseconds until its receiver has a number of
    bytes."""

    def __init__(self, sites: Sequence[Site], streams: int, sizes: Sequence[int]) -> None:
        """The first site sends."""
        self.sites, self.streams, self.sizes = sites, streams, sizes

    def __call__(self) -> Figure:
        """Sends each number of bytes once, by connections of its own."""
        figure: Figure = {}
        for size in self.sizes:
            figure[size] = 1000 * self.seconds(size)
            if figure[size] > 1000 * PATIENCE:
                break
        self.sizes = [size for size in self.sizes if size in figure]
        return figure

    def seconds(self, size: int) -> float:
        """Sends until the receiver has a number of bytes.

        With a number of bytes to send, iperf3 would end when its sender has written them, and the receiver would miss
        those in the sender's buffers.
        """
        here, there = self.sites
        receiver = [*there.front, "iperf3", "-s", "-1", "-f", "k", "-i", "0.1", "--forceflush"]
        sender = [*here.front, "iperf3", "-c", there.host, "-P", str(self.streams), "-t", "3600", "-i", "0"]
        received = 0.0
        with subprocess.Popen(receiver, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout
            time.sleep(0.3)
            with subprocess.Popen(sender, stdout=subprocess.DEVNULL) as client:
                try:
                    for text in server.stdout:
                        if not (found := INTERVAL.match(text)) or (found[1] == "SUM") != (self.streams > 1):
                            continue
                        begin, end, rate = float(found[2]), float(found[3]), float(found[4]) * KB / 8
                        if received + (end - begin) * rate >= size:
                            return begin + (size - received) / rate
                        received += (end - begin) * rate
                finally:
                    client.kill()
                    server.kill()
        raise SystemExit(f"iperf3 ended after {received:.0f} B of {size} B")


def playing(sizes: Sequence[int], watched: Mapping[str, Sequence[str]], times: Path) -> list[object]:
    """The arguments of the programs that play."""
    groups = ":".join(",".join(group) for group in watched.values())
    return [",".join(map(str, sizes)), PATIENCE, groups, times]


def one_way(path: Path, sizes: Sequence[int], watched: Mapping[str, Sequence[str]]) -> tuple[list[int], Figure]:
    """The sizes that a program has played, and its figures: an exchange less half of a small one, in milliseconds, and
    the processor times."""
    rows = {int(size): [float(word) for word in words] for size, *words in map(str.split, path.open())}
    back = rows.pop(SMALL)[0] / 2
    figure: Figure = {}
    for size, (seconds, *processors) in rows.items():
        figure[size] = 1000 * (seconds - back)
        figure |= {(name, size): used for name, used in zip(watched, processors, strict=True)}
    return [size for size in sizes if size in rows], figure


def ping(sites: Sequence[Site]) -> float:
    """Half of the median round trip between the front ends, in milliseconds."""
    here, there = sites
    out = run([*here.front, "ping", "-n", "-c", 10, "-i", 0.2, there.host], ROOT)
    return statistics.median(float(text) for text in re.findall(r"time=([0-9.]+) ms", out)) / 2


def address() -> str:
    """An address of the loopback interface with a port that nothing uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def largest(quick: bool) -> int:
    """The bytes of the largest message."""
    return int(os.environ.get(LARGEST, AIMED if quick else SIZES[-1]))


def rounds(quick: bool) -> int:
    """The number of rounds."""
    return 1 if quick else int(os.environ.get(ROUNDS, "5"))


def named(size: int) -> str:
    """A size with its unit, in powers of ten."""
    return f"{size // GB} GB" if size >= GB else f"{size // MB} MB" if size >= MB else f"{size // KB} kB"


def counted(count: int) -> str:
    """A number of streams."""
    return f"{count} stream{'' if count == 1 else 's'}"


def iperf_name(count: int) -> str:
    """The name of iperf3 as a contender."""
    return f"iperf3, {counted(count)}"
