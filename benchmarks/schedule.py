"""The cost of finding out which rank sends which part of a field to which rank.

Thousands of ranks: the work of all ranks is played in one process, one rank after the other, and the processor time is
taken (`crates/array/examples/schedule.rs`). The messages between the ranks are counted; their time on the way is left
out. Twelve ranks on each side: a real run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from benchmarks import native
from benchmarks.harness import ROOT, Record, compare, progress, run, sweep

TIME = "The schedule of a field, processor time of a rank, mean of the side that works longer"
SLOWEST = "The same, the slowest rank"
GROWTH = "The same, its growth from 1024 and 256 ranks"
SIZE = "The same for 8 GB of data, as against 1 GB"
MEMORY = "Memory of the schedule of a field, mean of a rank"
COUNTS = "Messages that find the schedule of a field, mean of a rank"
REAL = "A field from 12 to 12 ranks on 2 cores, rows to columns"

#: In the order of the tables.
QUESTIONS = [TIME, SLOWEST, GROWTH, SIZE, MEMORY, COUNTS]

#: The names of the cases in the example; whether each rank finds its partners alone.
CASES = {
    "block to block": True,
    "block to block-cyclic": True,
    "block to cyclic": True,
    "boxes to boxes": False,
    "8 boxes a rank": False,
    "indices, 2048 a sender": False,
}

#: The numbers of ranks of both sides.
RANKS = [(1024, 256), (2048, 512), (4096, 1024), (8192, 2048)]
FIRST, LAST = RANKS[0], RANKS[-1]
FEW = (12, 12)

#: Limits in microseconds, for regular and irregular pairs.
LIMITS = {True: 1000.0, False: 20000.0}

#: 8 GB may take this many times as long as 1 GB.
SAME = 1.1


@dataclass(frozen=True)
class Paper:
    """Table II of the XpressSpace paper: milliseconds for 1, 2, 4 and 8 GB, by ranks. The times include the network."""

    name: str
    table: dict[tuple[int, int], tuple[float, float, float, float]]

    def of(self, ranks: tuple[int, int], gigabytes: int) -> float:
        """Microseconds for an array of this size; for a case without sizes (0), the time of the smallest."""
        return 1000 * self.table[ranks][{0: 0, 1: 0, 2: 1, 4: 2, 8: 3}[gigabytes]]


XPRESSSPACE = Paper(
    "XpressSpace, the paper's Cray XT5",
    {
        (1024, 256): (11.9, 19.4, 21.8, 21.1),
        (2048, 512): (22.6, 23.7, 26.8, 29.0),
        (4096, 1024): (27.6, 33.7, 38.5, 46.2),
        (8192, 2048): (36.5, 49.0, 50.9, 62.4),
    },
)
MCT = Paper(
    "MCT, the paper's Cray XT5",
    {
        (1024, 256): (13.0, 16.0, 13.1, 14.1),
        (2048, 512): (34.4, 33.4, 35.4, 38.7),
        (4096, 1024): (59.63, 68.2, 126.0, 137.1),
        (8192, 2048): (77.4, 92.2, 156.7, 179.7),
    },
)

#: The paper's time for 8192 and 2048 ranks, as a multiple of its time for 1024 and 256, with 1 GB.
GREW = round(XPRESSSPACE.of(LAST, 1) / XPRESSSPACE.of(FIRST, 1), 2)

#: The name of a row of the example: case, size and ranks.
Key = tuple[str, int, tuple[int, int]]
Played = dict[Key, list[dict[str, float]]]


def main(quick: bool) -> list[Record]:
    """Runs the example in every round, and then the real run."""
    rounds = 2 if quick else 7
    return simulated(play(rounds)) + real(rounds)


def play(rounds: int) -> Played:
    """Runs the example ``rounds`` times."""
    command = ["cargo", "build", "--release", "--locked", "-p", "titin-array", "--example", "schedule"]
    told = run([*command, "--message-format=json"], ROOT).splitlines()
    (example,) = [line["executable"] for line in map(json.loads, told) if line.get("executable")]
    found: Played = {}
    for number in range(rounds):
        progress(f"round {number + 1}/{rounds}: schedules of up to {sum(LAST)} ranks")
        for line in run([example, "--json"], ROOT).splitlines():
            row = json.loads(line)
            key = (row["case"], row["gigabytes"], (row["senders"], row["receivers"]))
            found.setdefault(key, []).append(row)
    progress("")
    return found


def longer(row: dict[str, float]) -> float:
    """The mean of the side that works longer."""
    return max(row["sender"], row["receiver"])


def simulated(played: Played) -> list[Record]:
    """Records of the played ranks."""
    records: list[Record] = []
    rival = f"titin, {FIRST[0]} to {FIRST[1]}"
    for case, regular in CASES.items():
        size = max(gigabytes for name, gigabytes, _ in played if name == case)
        first, last = played[case, size, FIRST], played[case, size, LAST]
        limit = LIMITS[regular]
        for ranks in RANKS:
            ours = [longer(row) for row in played[case, size, ranks]]
            # The paper's arrays are in blocks at both ends.
            papers = [(XPRESSSPACE, limit), (MCT, None)] if case == "block to block" else [(XPRESSSPACE, limit)]
            for paper, aim in papers:
                pairs = [(one, paper.of(ranks, size)) for one in ours]
                records.append(compare(TIME, named(case, ranks), pairs, rival=paper.name, unit="µs", limit=aim))
        name = named(case, LAST)
        pairs = [(row["slowest"], longer(row)) for row in last]
        records.append(compare(SLOWEST, name, pairs, rival="the mean", unit="µs", limit=limit))
        pairs = [(longer(many) / longer(few), GREW) for many, few in zip(last, first)]
        # Where the partners of a rank increase with the number of ranks, a rank has more to list: no target then.
        aim = None if last[0]["partners"] > 2 * first[0]["partners"] else GREW
        records.append(compare(GROWTH, name, pairs, rival="XpressSpace, 1 GB", unit="times", limit=aim))
        if size > 1:
            pairs = [(longer(large), longer(small)) for large, small in zip(last, played[case, 1, LAST])]
            records.append(compare(SIZE, name, pairs, rival="titin, 1 GB", unit="µs", target=SAME))
        for question, what, unit in [(MEMORY, "memory", "B"), (COUNTS, "messages", "messages")]:
            if not regular or what == "memory":
                pairs = [(many[what], few[what]) for many, few in zip(last, first)]
                records.append(compare(question, name, pairs, rival=rival, unit=unit))
    rows = played["boxes to boxes", 8, FEW]
    pairs = [(few["messages"], many["messages"]) for few, many in zip(rows, played["boxes to boxes", 8, FIRST])]
    records.append(compare(COUNTS, named("boxes to boxes", FEW), pairs, rival=rival, unit="messages"))
    return sorted(records, key=lambda record: QUESTIONS.index(record.question))


def named(case: str, ranks: tuple[int, int]) -> str:
    """The name of a case in the tables."""
    return f"{case}, {ranks[0]} to {ranks[1]} ranks"


#: The numbers of lines in the programs' output: first and later trips of both cases.
TRIPS = {"grids": (0, 1), "boxes": (2, 3)}


def real(rounds: int) -> list[Record]:
    """Runs twelve ranks of Open MPI on each side, and one job of as many ranks that does the same by hand."""
    rival = "by hand, MPI_Allgather and MPI_Alltoallv"
    figures = sweep(rounds, {"titin": titin(*FEW), rival: by_hand(*FEW)})
    records = []
    for case, (first, later) in TRIPS.items():
        for name, ours, theirs in [("first exchange", first, 0), ("later ones", later, 1)]:
            pairs = list(zip(figures["titin"][ours], figures[rival][theirs]))
            records.append(compare(REAL, f"{case}, {name}", pairs, rival=rival, unit="µs"))
    return records


def titin(senders: int, receivers: int) -> native.Times:
    """The run of two instances."""
    program = native.parallel("schedule_titin")
    ports = "o_i: [out0, out1], s: ready", "o_i: ready, s: [in0, in1]"
    conduits = ["other.ready: one.ready", "one.out0: other.in0", "one.out1: other.in1"]
    ranks = senders, receivers
    return native.coupled(native.parallel_pair(program, [native.RESULT], ranks, ports, conduits))


def by_hand(senders: int, receivers: int) -> native.Times:
    """The run of one MPI job with as many ranks in all."""
    program = native.rival("schedule_mpi", "openmpi")
    return native.alone(*native.open_mpi(senders + receivers), program, senders, native.RESULT)
