"""Writes docs/papers.md: the experiments of the papers that titin follows, repeated. ``python -m benchmarks.papers``

A row needs the figures of a question in benchmarks/results; what was never measured is measured first. What the papers
say is cited by figure, table and number; none of their sentences is copied.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import harness, many, message, streams
from benchmarks.harness import RESULTS, ROOT, Record

PAGE = ROOT / "docs" / "papers.md"

HEAD = """\
# The papers that titin follows, repeated

`make papers` writes this page from [benchmarks/results](../benchmarks/README.md). Each row repeats an experiment of a
paper by its own protocol, on one machine, named below. The paper's figures are from its own machines, years ago: what
can be compared is how a system stands to its rivals in the same run, and how its cost grows. Where a figure "here" is
given for a system of the paper, it was built from its sources and run on a machine like the one below, on another day.

- **MUSCLE 2**: J. Borgdorff et al., Distributed multiscale computing with MUSCLE 2, the Multiscale Coupling Library and
  Environment, J. Comput. Sci. 5 (2014) 719–731,
  [doi:10.1016/j.jocs.2014.04.004](https://doi.org/10.1016/j.jocs.2014.04.004)
- **MPWide**: D. Groen et al., A light-weight communication library for distributed computing, Comput. Sci. Discov. 3
  (2010) 015002

Not repeated yet: what runs between sites; fields that are redistributed between parallel programs (XpressSpace); the
coupled applications.
"""


@dataclass
class Row:
    """An experiment: what the paper did and found, what titin did and found, and whether that can be compared."""

    experiment: str
    paper: str
    here: str
    alike: str


def message_time(found: list[Record]) -> list[Row]:
    """MUSCLE 2, section 3.2.1 and figure 4."""

    def line(name: str, case: str, rival: str | None = None, question: str = message.UNREAD) -> str:
        latency, rate = message.fitted([record for record in found if record.question == question], case, rival)
        return f"{name}: {microseconds(latency)}, {rate / 1000:.3g} GB/s"

    rivals = [
        line("Open MPI", "send and view", "Open MPI"),
        line("MPICH", "send and view", "MPICH"),
        line("file copy", "send and view", "file copy"),
    ]
    protocol = (
        "0 kB and 1 kB to 64 MB by powers of two, 100 round trips halved; latency is the least time, throughput the "
        "slope of a linear fit"
    )
    conditions = "105 round trips or more of each size, in 15 runs; the rest as there. Payloads are rewritten each time"
    return [
        Row(
            "Message time within a machine, native to native (fig. 4)",
            f"{protocol}. C++ submodels by way of the Java runtime: half of MPI's throughput and up to 30 µs more "
            "latency, but faster than a file copy (sections 3.2.1 and 5). MUSCLE 2 here: 19 to 30 µs, 64 MiB in 71 ms",
            f"{conditions}. C to C. {line('titin, the receiver has a view', 'send and view')}; "
            f"{line('titin, copied into its own memory', 'send and receive_into')}; {'; '.join(rivals)}",
            "Yes: protocol, sizes, rivals. MPI copies into the receiver's memory, which a view does without",
        ),
        Row(
            "The same, two managers over TCP (fig. 4)",
            "Two Local Managers on a machine. MUSCLE 2 here: 60 to 75 µs, 64 MiB in 34 to 37 ms",
            f"C to C, pinned to TCP. {line('titin', 'send and view by tcp', question=message.TCP)}; "
            f"{line('one raw socket', 'send and view by tcp', 'raw socket', message.TCP)}",
            "Nearly: there both ends are Java, and doubles are serialized",
        ),
        Row(
            "The same, within one process (fig. 4)",
            "All instances in one Java machine; a message is copied once. MUSCLE 2 here: about 5 µs, 64 MiB in 21 to "
            "24 ms",
            f"Two instances in one program in C. {line('titin', 'send and view by inproc', question=message.WITHIN)}",
            "Yes, but for the language",
        ),
    ]


def instances(found: list[Record]) -> list[Row]:
    """MUSCLE 2, section 3.1 and table 3."""
    paper = {(record.question, record.case): record for record in found if record.rival_name == many.PAPER.name}

    def here(question: str, *cases: str) -> str:
        records = [(case, paper[question, case]) for case in cases]
        return ", ".join(f"{case.split(': ')[-1]} {record.titin:.3g} {record.unit}" for case, record in records)

    def run_time(question: str, language: str) -> str:
        cases = ("1000 instances, 50000 conduits", "a, whatever there is", "b, each instance", "c, each conduit")
        return here(question, *(f"{language}: {case}" for case in cases))

    largest = ("C: 1000 instances, 50000 conduits", "C: one instance with ten conduits")
    return [
        Row(
            "What instances and conduits cost (section 3.1, table 3)",
            "1 to 1,000 submodels and 0 to 50,000 conduits in one Java machine, an empty message sent and received on "
            "each; run time fitted as a + b n + c m, where a is the least found. iMac: a 0.77 s (0.68 in the text), b "
            "1.6 ms a submodel, c 0.11 ms a conduit, 7.1 s for the largest; SuperMUC: 1.2 s, 1.6 ms, 0.10 ms, 6.6 s. "
            "MUSCLE 2 here: 1.2 to 1.4 s, 2 ms, 0.085 ms, 7.7 s",
            f"Instances in one process. In C: {run_time(many.QUESTION, 'C')}; without reading the description: "
            f"{run_time(many.APART, 'C')}. Coroutines in Python: {run_time(many.QUESTION, 'Python')}",
            "Nearly: whole runs, the description read included, but for the figures without it; six pairs of n and m "
            "six times in place of 30 by 36, each weighted by its own size, and a fitted with the rest",
        ),
        Row(
            "The memory of that (table 3)",
            "73 MB, 168 kB a submodel, 3.4 kB a conduit (together 403 MB for the largest, and 202 kB a submodel with "
            "ten conduits); 1.1 MB a port whose peer is elsewhere. iMac",
            f"{here(many.MEMORY, *largest)}; {here(many.MEMORY, 'one more conduit by tcp, both ends')}",
            "Nearly: the most that the processes had, the manager's included; there what two runtimes had reserved",
        ),
        Row(
            "A native submodel, which is a process (table 3)",
            "24 ms on the iMac. MUSCLE 2 here: 12 ms",
            here(many.QUESTION, "one more native process"),
            "Yes: the slope over 2, 20 and 50 of them, each with one conduit",
        ),
    ]


def exchanges(found: list[Record]) -> list[Row]:
    """MPWide, section 4.1.1 and figure 2."""

    def line(megabytes: int) -> str:
        records = [record for record in found if record.case.startswith(f"{megabytes} MB, ")]
        ours = " / ".join(f"{megabytes * 8 / record.titin:.3g}" for record in records)
        theirs = " / ".join(f"{megabytes * 8 / record.rival:.3g}" for record in records)
        return f"{megabytes} MB: {ours} Gbit/s (bare sockets {theirs})"

    counts, rounds = " / ".join(str(count) for count in streams.STREAMS), found[0].rounds
    return [
        Row(
            "Throughput by the number of streams, within a site (fig. 2)",
            "100 messages of 8, 64 and 512 MB exchanged both ways between two nodes of Huygens, by 1 to 124 streams. "
            "Best with 2 or 4, less with more; at best close to the 10 Gbit/s of the line. MPWide here, over loopback, "
            "64 MB by 1 / 2 / 4 / 8 / 16 streams: 0.93 / 1.7 / 2.5 / 3.3 / 4.0 Gbit/s, and 17 / 23 / 20 / 22 / 15 in "
            "pieces of 1 MiB without its pacing",
            f"{rounds} runs of {streams.EXCHANGES} exchanges over the loopback interface, by {counts} streams; each "
            f"way {'; '.join(line(megabytes) for megabytes in streams.MEGABYTES)}",
            "In part: sizes, streams and the exchange are the same; a loopback interface is no line, and both ends "
            "share two cores and their memory",
        )
    ]


#: The question whose results each part is made of, and the part.
PARTS: list[tuple[str, str, Callable[[list[Record]], list[Row]]]] = [
    ("MUSCLE 2", "message", message_time),
    ("MUSCLE 2", "many", instances),
    ("MPWide", "streams", exchanges),
]


def microseconds(time: float) -> str:
    """A time in the unit that suits it."""
    return f"{time:.3g} µs" if time < 1000 else f"{time / 1000:.3g} ms"


def main() -> None:
    """Measures what is missing, and writes the page."""
    from benchmarks.__main__ import QUESTIONS, measure

    text = [HEAD]
    for paper in dict.fromkeys(paper for paper, _, _ in PARTS):
        text.append(f"\n## {paper}\n")
        for name, make in [(name, make) for owner, name, make in PARTS if owner == paper and name in QUESTIONS]:
            if not harness.load(name):
                print(f"{name} was not measured yet", flush=True)
                measure(name, quick=False)
            data = json.loads((RESULTS / f"{name}.json").read_text())
            text.append(f"Measured on {data['machine']}, {data['date']}:\n")
            text += ["| experiment | the paper | titin | like for like |", "| --- | --- | --- | --- |"]
            text += [
                f"| {row.experiment} | {row.paper} | {row.here} | {row.alike} |" for row in make(harness.load(name))
            ]
            text.append("")
    PAGE.write_text("\n".join(text).rstrip() + "\n")
    print(f"{PAGE.relative_to(ROOT)} is written")


if __name__ == "__main__":
    main()
