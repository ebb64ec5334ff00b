"""Writes docs/papers.md: the experiments of the papers that titin follows, repeated. ``python -m benchmarks.papers``

A row needs the figures of a question in benchmarks/results. A question without figures is measured first. The results
of the papers are cited by figure, table and number; none of the papers' sentences is copied.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks import (
    blocks,
    canal,
    distributed,
    harness,
    lines,
    many,
    message,
    native,
    nbody,
    octree,
    pull,
    schedule,
    streams,
    toysmp,
)
from benchmarks.harness import RESULTS, ROOT, Record

PAGE = ROOT / "docs" / "papers.md"

#: The systems in table II of the XpressSpace paper.
TABLE_II = (schedule.XPRESSSPACE, schedule.MCT)

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
- **h3-Open-UTIL/MP**: D. Caviedes-Voullième et al., Portability of Multiphysics Applications on Heterogeneous Modular
  Supercomputers
- **XpressSpace**: F. Zhang et al., XpressSpace: a programming framework for coupling partitioned global address space
  simulation codes, Concurrency Computat.: Pract. Exper. 26 (2014) 644–661,
  [doi:10.1002/cpe.3025](https://doi.org/10.1002/cpe.3025)
"""


@dataclass
class Experiment:
    """An experiment: what the paper did and found, what titin did, whether the two can be compared, and a table of all
    figures."""

    name: str
    paper: str
    here: str
    alike: str
    columns: Sequence[str] = ()
    figures: Sequence[Sequence[str]] = field(default_factory=list)


def message_time(found: list[Record]) -> Experiment:
    """MUSCLE 2, section 3.2.1 and figure 4."""

    def line(name: str, case: str, again: str = "", rival: str | None = None, of: str = message.UNREAD) -> list[str]:
        latency, rate = message.fitted([record for record in found if record.question == of], case, rival)
        return [name, microseconds(latency), f"{rate / 1000:.3g} GB/s", again]

    view, into, tcp, within = (
        "send and view",
        "send and receive_into",
        "send and view by tcp",
        "send and view by inproc",
    )
    return Experiment(
        "Message time within a machine (fig. 4)",
        "0 kB and 1 kB to 64 MB by powers of two, 100 round trips halved; latency is the least time, throughput the "
        "slope of a linear fit. On three machines MPI is best; MUSCLE 2 with C++ has half of its throughput and up to "
        "30 µs more latency, and is faster than a file copy (sections 3.2.1 and 5)",
        "The same sizes and figures, from 105 round trips or more of each size in 15 runs. Payloads are rewritten each "
        "time. C to C, two processes if nothing else is said",
        "Yes, but for the languages: there Java within a process and between two managers, and C++ by way of them",
        ["carrier", "latency", "throughput", "MUSCLE 2 here, small and 64 MiB"],
        [
            line("titin, the receiver has a view", view, "C++ to C++: 19 to 30 µs, 71 ms"),
            line("titin, copied to the receiver's memory", into),
            line("titin, pinned to TCP", tcp, "two managers: 60 to 75 µs, 34 to 37 ms", of=message.TCP),
            line("titin, in one process", within, "one Java machine: 5 µs, 21 to 24 ms", of=message.WITHIN),
            line("Open MPI", view, rival="Open MPI"),
            line("MPICH", view, rival="MPICH"),
            line("one raw TCP socket", tcp, rival="raw socket", of=message.TCP),
            line("file copy", view, rival="file copy"),
        ],
    )


def instances(found: list[Record]) -> Experiment:
    """MUSCLE 2, section 3.1 and table 3."""
    records = {(record.question, record.case): record for record in found if record.rival_name == many.PAPER.name}

    def of(question: str, case: str) -> str:
        record = records.get((question, case))
        return f"{record.titin:.3g} {record.unit}" if record else ""

    def line(name: str, case: str, *theirs: str) -> list[str]:
        hosted = [of(many.QUESTION, f"C: {case}"), of(many.APART, f"C: {case}"), of(many.QUESTION, f"Python: {case}")]
        return [name, *theirs, *hosted]

    def memory(name: str, case: str, theirs: str) -> list[str]:
        return [name, theirs, "", "", of(many.MEMORY, f"C: {case}"), "", of(many.MEMORY, f"Python: {case}")]

    native = [of(many.QUESTION, "one more native process"), "", ""]
    port = [of(many.MEMORY, "one more conduit by tcp, both ends"), "", ""]
    return Experiment(
        "What instances and conduits cost (section 3.1, table 3)",
        "1 to 1,000 submodels and 0 to 50,000 conduits in one Java machine, an empty message sent and received by "
        "each; whole runs, their time fitted as a + b n + c m, a being the least found. A native submodel is one more "
        "process",
        "Instances in one process, in C and as coroutines in Python; six pairs of n and m, six times, fitted with each "
        "weighted by its size. Memory is the most that all processes had. Native ones: the slope over 2, 20 and 50",
        "Yes, but for fewer pairs of n and m, and a fit of a",
        [
            "",
            "the paper's iMac",
            "its SuperMUC",
            "MUSCLE 2 here",
            "titin, C",
            "titin, C, without reading the description",
            "titin, Python",
        ],
        [
            line("n = 1,000, m = 50,000", "1000 instances, 50000 conduits", "7.1 s", "6.6 s", "7.7 s"),
            line("a, nothing at all", "a, whatever there is", "0.77 s (0.68 in the text)", "1.2 s", "1.2 to 1.4 s"),
            line("b, a submodel", "b, each instance", "1.6 ms", "1.6 ms", "2 ms"),
            line("c, a conduit", "c, each conduit", "0.11 ms", "0.10 ms", "0.085 ms"),
            ["a native submodel", "24 ms", "", "12 ms", *native],
            memory("memory, n = 1,000, m = 50,000", "1000 instances, 50000 conduits", "403 MiB by its fit"),
            memory("memory, a submodel with ten conduits", "one instance with ten conduits", "202 KiB by its fit"),
            ["memory, a conduit between processes", "2.2 MiB for its two ports", "", "", *port],
        ],
    )


def sections(found: list[Record]) -> Experiment:
    """MUSCLE 2, section 4.1 and figures 7 and 8."""
    by_case = {record.case: record for record in found}

    def line(resolution: float) -> list[str]:
        along, across, upwards = canal.points(resolution)
        cells = [f"{resolution}", f"{along * across * upwards:,}"]
        for part in ("step", canal.OUTSIDE):
            ways = [by_case[f"{resolution} points per metre, {way}, {part}"] for way in canal.WAYS.values()]
            cells += [microseconds(ways[0].rival)]
            cells += [f"{microseconds(record.titin)} ({record.ratio:.3g})" for record in ways]
        return cells

    return Experiment(
        "A canal in two coupled sections (section 4.1, fig. 7 and 8)",
        "A 3D cavity of 13,000 m by 40 m by 10 m at 0.5 to 4 points per metre (0.8 to 340 million points), 100 "
        "iterations, three times: in one piece on 100 cores, and as two sections on 50 each. The difference hardly "
        "depends on the size and is mostly waiting for messages; at 4 points per metre the whole is 5 % more efficient",
        "The same domain, iterations and repeats at 0.25 to 1 points per metre, in one piece on two ranks of Open MPI, "
        "and as two sections on a rank each. The same to the bit. Times are medians of the rounds, ratios medians of "
        "each round's own: its coupled run beside the whole that ran right before and after. Where the machine's speed "
        "changes from round to round by more than whole and coupled differ, as at 1 point per metre, that is not the "
        "ratio of the two medians",
        "In part: the domain and the exchange in every step are the same; the solver is another (Palabos there), cores "
        "are 2 and not 100, and sizes end at 5.9 million points",
        [
            "points per metre",
            "points",
            "a step of the whole",
            "coupled by fields (ratio within a round)",
            "coupled by rank 0 (ratio within a round)",
            "exchange of the whole, for who comes last",
            "of fields (ratio within a round)",
            "by rank 0 (ratio within a round)",
        ],
        [line(resolution) for resolution in canal.ALL],
    )


def two_sites(found: list[Record]) -> Experiment:
    """MUSCLE 2, section 4.1 and figure 7."""
    count = distributed.STEPS[1] - distributed.STEPS[0]
    return Experiment(
        "Two coupled sections at two sites (section 4.1, fig. 7)",
        "The canal in one piece on 100 cores of a cluster (T_mono), as two sections on 50 cores each of this "
        "cluster (T_local), and as two sections on two clusters in Geneva (T_distr). Average time of an iteration, "
        "and the efficiencies ε_local = T_mono / T_local and ε_distr = T_mono / T_distr, by the number of points "
        "per metre. Both are low for few points, and rise with their number; at 4 points per metre about 5 % are "
        "missing. ε_distr is below ε_local for few points, and a little above it for many, since the second "
        "cluster is the faster one. The paper has no model of the overhead; it says that T_local is longer than "
        "T_mono by about the same time at all sizes",
        "The canal as above, and the cavity of [examples](../examples/cavity/), whose whole is one process on one "
        "core. T_distr: the halves on compute nodes that reach only the relay of their own site, with a line of 1 "
        f"Gbit/s between the relays; the first column has its round trip. The same to the bit. {found[0].rounds} "
        f"rounds of {canal.STEPS} steps (cavity: {count}). The hidden part of the line is 1 - (T_distr - T_local) / "
        "(half of the round trip): 1 if the line costs nothing, 0 if each step waits for all of it, below 0 if two "
        "sites cost more than the line; in brackets the range. Seam first: a section computes and sends what "
        "crosses the seam before it computes the rest. Seam last, as in the paper: after all the rest. The cavity "
        "sends at the beginning of a step, and computes nothing before it has received",
        "In part: the scenarios and the efficiencies are the paper's, and both halves are on machines of one speed "
        "here. The line is emulated, and both sites, the relays and the emulator share the 2 cores of one machine, "
        "so that their work makes the halves slower; there each site has cores and a network of its own. The paper "
        "does not tell the round trip between its clusters",
        distributed.COLUMNS,
        distributed.rows(found),
    )


def exchanges(found: list[Record]) -> Experiment:
    """MPWide, section 4.1.1 and figure 2."""
    by_case = {record.case: record for record in found}
    rounds, again = found[0].rounds, {1: "0.93 / 17", 2: "1.7 / 23", 4: "2.5 / 20", 8: "3.3 / 22", 16: "4.0 / 15"}

    def line(count: int) -> list[str]:
        cells = [str(count)]
        for megabytes in streams.MEGABYTES:
            record = by_case[streams.case(megabytes, count)]
            # A megabyte in a millisecond is 8 Gbit/s.
            cells += [f"{8 * megabytes / record.titin:.3g}", f"{8 * megabytes / record.rival:.3g}"]
        return [*cells, again.get(count, "")]

    return Experiment(
        "Throughput by the number of streams, within a site (fig. 2)",
        "100 messages of 8, 64 and 512 MB exchanged both ways between two nodes of Huygens, by 1 to 124 streams. Best "
        "with 2 or 4, less with more; at best close to 10 Gbit/s",
        f"{rounds} runs of {streams.EXCHANGES} exchanges over the loopback interface. Gbit/s each way, beside as many "
        "bare sockets with a thread each",
        "In part: sizes, streams and the exchange are the same; a loopback interface is no line, and both ends share "
        "two cores and their memory. Memory of more than 256 MiB is not used again, so 512 MB pay for fresh pages",
        [
            "streams",
            *(f"{megabytes} MB, {who}" for megabytes in streams.MEGABYTES for who in ("titin", "sockets")),
            "MPWide here, 64 MB: as it comes / 1 MiB pieces, unpaced",
        ],
        [line(count) for count in streams.STREAMS],
    )


def far_apart(found: list[Record]) -> Experiment:
    """MPWide, sections 4.1.2 and 4.1.3, and figures 3 and 4."""
    sizes = lines.SIZES[lines.SIZES.index(lines.LARGE) :]
    of_cells: dict[str, dict[int, list[Record]]] = {}
    for record in found:
        if record.question == lines.QUESTION and record.size_bytes in sizes:
            line = record.case.partition(":")[0]
            of_cells.setdefault(line, {}).setdefault(record.size_bytes, []).append(record)

    def rate(size: int, milliseconds: float) -> str:
        return f"{8 * size / milliseconds / 1e6:.3g}"

    def cells(of_size: dict[int, list[Record]]) -> list[str]:
        words = []
        for size in sizes:
            records = of_size.get(size, [])
            raw = [record.rival for record in records if record.rival_name == lines.RAW]
            iperf = [record.rival for record in records if record.rival_name != lines.RAW]
            words += [rate(size, min(times)) if times else "" for times in ([one.titin for one in records], raw, iperf)]
        return words

    return Experiment(
        "Throughput over lines between sites (figs. 3 and 4)",
        "100 messages of 8, 64 and 512 MB exchanged both ways by 1 to 128 streams between two sites of DAS-3 "
        "(2.1 ms) and between Huygens and Louhi (37.6 ms). With 2.1 ms 64 MB go best by 8 streams and 512 MB by 32; "
        "with 37.6 ms 8 MB have 3.5 Gbit/s at most, and 512 MB 4.64 by 64 streams, on a shared line of 10 Gbit/s",
        "Messages one way through two relays, with the default streams, over an emulated line of 1 Gbit/s. Gbit/s, "
        "beside one raw TCP stream between the front ends, which was used before, and the best of iperf3 with 1, 8 and "
        "64 streams of its own. Lines: round trip, loss, congestion control",
        "In part: the round trips are the paper's, and that of its light path to Tokyo (273 ms). The line is emulated "
        "and slower, nobody else uses it, and messages go one way at a time",
        ["line", *(f"{lines.named(size)}, {who}" for size in sizes for who in ("titin", "raw TCP", "iperf3"))],
        [[line, *cells(of_size)] for line, of_size in of_cells.items()],
    )


def by_streams(found: list[Record]) -> Experiment:
    """MPWide, the streams in figures 3 and 4."""
    by_line: dict[str, list[Record]] = {}
    for record in found:
        if record.question == lines.STREAMS:
            by_line.setdefault(record.case.partition(":")[0], []).append(record)

    def rate(milliseconds: float) -> str:
        return f"{8 * lines.AIMED / milliseconds / 1e6:.3g}"

    return Experiment(
        "Throughput by the number of streams, between sites (figs. 3 and 4)",
        "As above: more streams help until the line is full, more so with larger messages and longer lines; the best "
        "number is the user's to find",
        "Messages of 64 MB one way through two relays, by 1 to 128 streams and by the default number, in Gbit/s",
        "In part, as above; the paper's lines have no loss that it tells",
        ["line", "default", *(lines.counted(count) for count in lines.FIXED)],
        [
            [line, rate(records[0].titin), *(rate(record.rival) for record in records)]
            for line, records in by_line.items()
        ],
    )


def bodies(found: list[Record]) -> Experiment:
    """MPWide, section 5 and figures 7 to 10."""
    problems = [nbody.HALVES, nbody.LARGE]
    small, large = (f"{problem.steps - problem.skipped} of {problem.steps}" for problem in problems)
    return Experiment(
        "N-body over two sites (figs. 7 to 10)",
        "GreeM, a TreePM code in C++ with MPI, in two slices: the time of each step, of computing and of MPWide's "
        "communication. 256³ particles, 30 cores at each site: between Amsterdam and Delft (2.1 ms, fig. 7) "
        "communication takes less than 20 % of the time; between Amsterdam and Helsinki (37.6 ms, fig. 8) computing "
        "takes about 25 % less, and communication as long on average but more unevenly; between Amsterdam and Tokyo "
        "(273 ms, 10 Gbit/s, 64 streams, fig. 9) communication takes 7 to 10 s a step, 26 to 37 round trips, and "
        "mostly less than computing, with drops when packets were lost. 2048³ particles on 500 and 250 cores in "
        "Amsterdam and Tokyo (fig. 10): 50 to 60 s a step, an eighth of the time, in 102 steps",
        "[miniapps/nbody](../miniapps/nbody/), a TreePM code of our own, each part a program, joined by paths with the "
        "streams that titin chooses: on one host, and over an emulated line of 1 Gbit/s with 0.01 % loss and "
        f"{nbody.CONTROL}. {found[0].rounds} rounds beside the whole, one MPI program on as many ranks; all runs "
        f"end in the same bits. Medians over the last {small} steps (64³: {large}), averaged over the parts. 3:1 has "
        "three ranks and one, thirds are three parts on a rank each. The bound is half of a round trip and the bytes "
        "by the rate; a ratio below 1 means that communication is partly hidden behind computing. Over the longest "
        "line one lost packet makes several steps slower, so it is there without loss, too",
        "In part: the kind of code, the slices and the round trips are the paper's. The code is another "
        "one and needs one half of a round trip a step, particles are 512 to 64 times fewer, and two cores have all "
        "ranks and the emulator. So shares cannot be compared; how communication stands to the round trip can",
        nbody.COLUMNS,
        nbody.rows(found),
    )


def coupled(found: list[Record]) -> Experiment:
    """h3-Open-UTIL/MP, section 5.1 and figures 4 and 5."""
    records = {(record.rival_name, record.question, record.case): record for record in found}
    questions = [toysmp.STEP, toysmp.THERE, toysmp.BACK, toysmp.EXCHANGE]
    again = {1: "OASIS3-MCT 79 ms, there and back 300 ms; MCT 81 ms", 2: "MCT 52 ms"}

    def line(ranks: int, way: str) -> list[str]:
        of_rivals = [
            [records[rival, question, toysmp.case(ranks, way)] for question in questions] for rival in toysmp.RIVALS
        ]
        times = [f"{record.titin:.3g} ms" for record in of_rivals[0]]
        rate = f"{toysmp.BYTES / of_rivals[0][-1].titin / 1e6:.3g} GB/s"
        both = [f"{of_case[-1].rival:.3g} ms" for of_case in of_rivals]
        steps = [f"{of_case[0].rival:.3g} ms" for of_case in of_rivals]
        one_way = again.get(ranks, "") if way == toysmp.WAYS[0] else ""
        return [f"{ranks}", way, *times, rate, *both, *steps, one_way]

    return Experiment(
        "ToySMP: three coupled components, ten fields each way (section 5.1, figs. 4 and 5)",
        "compA and compC send ten fields of 1024 by 1024 doubles each to compB, which answers with as many: 335 MB a "
        "step. East-west slabs, 1 to 128 processes each, on the nodes of DEEP and of Wisteria/BDEC-01, by sockets, "
        "files or both. Times stand in the figures alone, and have the wait for other components in them. Aggregated, "
        "DEEP is a little faster up to 32 processes and no faster from 64 on; sockets on Wisteria/BDEC-01 stay as they "
        "are, files gain much",
        "The same fields, slabs and order of sends and answers, 1 to 8 ranks of Open MPI each. Medians of "
        f"{toysmp.STEPS[toysmp.EXTENT] - 2} steps, of {found[0].rounds} runs. There: from when compA and compC both "
        "send until compB has all; back: from when compB sends until both have all. What the components compute is in "
        "the step alone. By hand, in one MPI job: packing and MPI_Alltoallv; and MPI_Isend from array to array, which "
        "only slabs that are equal on both sides allow",
        "In part: data, slabs and order are the paper's. All ranks share two cores and their memory, so that more of "
        "them cannot be faster; sockets and files between unlike machines, which the paper is about, are not there. "
        "UTIL/MP itself, built here, takes 0.09 ms to set up each entry of a remapping table, minutes for such a grid; "
        "ten layers of 128 by 128 took 11 ms both ways",
        [
            "ranks each",
            "fields",
            "a step",
            "there",
            "back",
            "both ways",
            "of 335 MB",
            "both ways, packed by hand",
            "both ways, by MPI_Isend",
            "a step, packed by hand",
            "a step, by MPI_Isend",
            "ten such fields from one program to one other, here",
        ],
        [line(ranks, way) for ranks in toysmp.RANKS for way in toysmp.WAYS],
    )


def solver_and_statistics(found: list[Record]) -> Experiment:
    """h3-Open-UTIL/MP, section 5.2 and figure 6."""
    records = {(record.question, record.case): record for record in found}
    cases = list(dict.fromkeys(record.case for record in found))

    def line(case: str) -> list[str]:
        of_case = [records[question, case] for question in (octree.START, octree.WHOLE)]
        cells = [f"{time:.3g} s" for record in of_case for time in (record.titin, record.rival)]
        return [case.removesuffix(" ranks"), *cells, *(f"{record.ratio:.3g}" for record in of_case)]

    return Experiment(
        "LB and POST_DATA of mAIA, Type A (section 5.2, fig. 6)",
        "A lattice Boltzmann solver and the statistics of its flow, 5,000 steps of a problem of one size on more and "
        "more processes, 4 or 16 a node: one MPI job beside two that WaitIO joins, by verbs on DEEP and by Tofu on "
        "Wisteria/BDEC-01. Times stand in the figure alone. WaitIO starts as fast as MPI or faster up to 128 "
        "processes, the fewer the better, and later beyond",
        "[miniapps/octree](../miniapps/octree/), the same mesh and method in a tube with a bulge: one Open MPI job, "
        "coupled by hand with MPI_Isend, beside two jobs of Open MPI coupled by a field, half of the ranks each. "
        f"{octree.STEPS} steps with statistics of every fifth, the same to the bit; medians of {found[0].rounds} "
        "rounds, ratios medians of each round's own. From the command to the first step, and to the end",
        "In part: what is compared is the paper's, the network is not. All ranks share two cores and their memory, so "
        "that more ranks are slower; the shape can be compared for the start-up alone",
        [
            "ranks",
            "start-up, titin",
            "start-up, one MPI job",
            "whole run, titin",
            "whole run, one MPI job",
            "ratio of the start-up",
            "ratio of the whole run",
        ],
        [line(case) for case in cases],
    )


def scaling(found: list[Record]) -> Experiment:
    """XpressSpace, section 6.1 and figure 7."""
    return Experiment(
        "Weak scaling, one way (experiment 1, fig. 7)",
        "1,024 to 16,384 ranks send 16 MB each to an eighth as many, by Direct-Push, 50 times: 16 to 256 GB at once, "
        "two-dimensional blocks, UPC to Global Arrays on a Cray XT5. The time grows by less than 15 %, the throughput "
        "of all from 25 to 325 GB/s",
        "8 to 32 ranks send 16 MiB each to an eighth as many, real ones in C with Open MPI, on two cores; "
        f"{blocks.TRIPS * found[0].rounds} exchanges. Beside it one MPI job, by hand: packing and MPI_Alltoallv, or "
        "MPI_Isend with derived types",
        "No: there each rank has a core and a network, here all share the memory of one machine. So the best that "
        "there can be is a throughput that stays as ranks are added",
        BLOCK_COLUMNS,
        block_rows([record for record in found if record.question == blocks.WEAK]),
    )


def exchange(found: list[Record]) -> Experiment:
    """XpressSpace, section 6.2 and figures 8 and 9."""
    return Experiment(
        "Two arrays, one each way (experiment 2, figs. 8 and 9)",
        "1,024 to 8,192 ranks exchange two arrays with a fourth as many, 1 to 8 GB in all, by Direct-Push, beside MCT "
        "in one MPI job. The two are alike with 1 GB; with more, XpressSpace is faster, since it does without MCT's "
        "copies at both ends and the matching of messages (section 6.2)",
        "4 to 16 ranks and a fourth as many, 128 and 256 MiB in all, on two cores. In place of MCT one MPI job, packed "
        "by hand and sent by MPI_Alltoallv, with the same copies, or sent by MPI_Isend with derived types. MCT itself, "
        "built from its sources on a machine like this one, took 7.7 ms for 8 MiB from 1 rank to 1, rows to columns, "
        "and 6.7 ms from 3 to 3; titin's figures "
        "for such arrays are those of `redistribution` in [benchmarks](../benchmarks/README.md)",
        "In part: the exchange and what is compared with it are the same, the machine is not, and ranks are few",
        BLOCK_COLUMNS,
        block_rows([record for record in found if record.question == blocks.STRONG]),
    )


def latest(found: list[Record]) -> Experiment:
    """XpressSpace, section 5.3 and figure 6."""
    kept = {record.case: record for record in found if record.question == pull.KEEP}

    def line(record: Record) -> list[str]:
        keeping = kept[record.case]
        return [*block_row(record), f"{keeping.titin:.3g} ms", f"{keeping.rival:.3g} ms"]

    made, rest = pull.PAUSES
    return Experiment(
        "Pulling the latest version (Cache-Pull, fig. 6)",
        "A two-dimensional array goes from one program to another one of another speed: each rank of the first keeps "
        "its part of the last versions in memory that others may read (RDMA get), and goes on; the second gets the "
        "latest one when it wants it (section 5.3)",
        f"1 to 8 ranks make {pull.VERSIONS} versions of 16 MiB each, in step with each other and with nobody else, "
        f"with pauses of {made} ms; 1 or 2 pull the latest, with pauses of {rest} ms, until they have the last. Mean "
        "time of a pull, for the slowest rank, and of the call that keeps a version; medians of "
        f"{found[0].rounds} runs. titin keeps {pull.KEPT} versions, and gives all ranks the same one, so a pull also "
        "waits for the rank that makes it last. By hand: MPI_Get in one MPI job under a lock for each rank that sends, "
        "which keeps one version; what comes may be of different ones",
        "No: the paper shows how it goes, and no times",
        [
            "ranks",
            "MiB",
            "a pull, titin",
            "titin, throughput",
            "by hand",
            "by hand, throughput",
            "keeping a version, titin",
            "keeping one by hand",
        ],
        [line(record) for record in found if record.question == pull.PULL],
    )


#: The columns of `block_rows`.
BLOCK_COLUMNS = ["ranks", "MiB", *(cell for who in ("titin", *native.BY_HAND) for cell in (who, "throughput"))]


def block_rows(found: list[Record]) -> list[list[str]]:
    """A row for each case of coupled blocks, with both rivals."""
    cases = {record.case: {other.rival_name: other for other in found if other.case == record.case} for record in found}
    return [
        [*block_row(of_case[native.PACKED]), *throughput(of_case[native.PACKED], of_case[native.TYPED].rival)]
        for of_case in cases.values()
    ]


def block_row(record: Record) -> list[str]:
    """A row about coupled blocks: times and throughput of titin and a rival."""
    ranks, amount = record.case.removesuffix(" MiB").split(" ranks, ")
    return [ranks, amount, *throughput(record, record.titin), *throughput(record, record.rival)]


def throughput(record: Record, milliseconds: float) -> list[str]:
    """A time of a case of coupled blocks, and the throughput that follows."""
    amount = int(record.case.removesuffix(" MiB").split(" ranks, ")[1])
    return [f"{milliseconds:.3g} ms", f"{amount * harness.MIB / milliseconds / 1e6:.3g} GB/s"]


def schedules(found: list[Record]) -> Experiment:
    """XpressSpace, section 6.3 and table II."""
    times = {record.case: record.titin for record in found if record.question == schedule.TIME}

    def line(ranks: tuple[int, int]) -> list[str]:
        ours = [microseconds(times[schedule.named(case, ranks)]) for case in schedule.CASES]
        papers = [f"{paper.of(ranks, 1) / 1000:.3g} to {paper.of(ranks, 8) / 1000:.3g} ms" for paper in TABLE_II]
        return [f"{ranks[0]} and {ranks[1]}", *papers, *ours]

    def grown(case: str) -> str:
        first, last = (times[schedule.named(case, ranks)] for ranks in (schedule.FIRST, schedule.LAST))
        return f"{last / first:.3g} times"

    growths = [f"{paper.of(schedule.LAST, 1) / paper.of(schedule.FIRST, 1):.3g} times" for paper in TABLE_II]
    return Experiment(
        "Finding the schedule (experiment 3, table II)",
        "Two arrays of 1 to 8 GB in blocks, 1,024 and 256 to 8,192 and 2,048 ranks, all real, time on average, with "
        "the network. The size of the array does not matter, the number of ranks does; XpressSpace takes half of MCT's "
        "time or less with the most ranks",
        "One array of 8 GB, any number of ranks played in one process, their work timed and their messages counted: "
        "none between regular sides, and for a rank of an irregular one "
        f"{messages(found)} with the most ranks. Mean of the side that works longer",
        "No: the time of messages on the way is missing here, and most of what is there. How it grows with ranks can "
        "be compared, as far as that is work",
        ["ranks", "XpressSpace, 1 to 8 GB", "MCT, 1 to 8 GB", *(f"titin, {case}" for case in schedule.CASES)],
        [*map(line, schedule.RANKS), ["growth", *growths, *map(grown, schedule.CASES)]],
    )


def messages(found: list[Record]) -> str:
    """The number of messages of a rank, over the irregular cases."""
    most = {schedule.named(case, schedule.LAST) for case in schedule.CASES}
    amounts = [record.titin for record in found if record.question == schedule.COUNTS and record.case in most]
    return f"{min(amounts):.0f} to {max(amounts):.0f}"


#: For each paper, the questions whose results the experiments are made of.
PARTS: list[tuple[str, str, Callable[[list[Record]], Experiment]]] = [
    ("MUSCLE 2", "message", message_time),
    ("MUSCLE 2", "many", instances),
    ("MUSCLE 2", "canal_sizes", sections),
    ("MUSCLE 2", "distributed", two_sites),
    ("MPWide", "streams", exchanges),
    ("MPWide", "lines", far_apart),
    ("MPWide", "lines", by_streams),
    ("MPWide", "nbody", bodies),
    ("h3-Open-UTIL/MP", "toysmp_ranks", coupled),
    ("h3-Open-UTIL/MP", "octree", solver_and_statistics),
    ("XpressSpace", "blocks", scaling),
    ("XpressSpace", "blocks", exchange),
    ("XpressSpace", "schedule", schedules),
    ("XpressSpace", "pull", latest),
]

#: Questions that most machines cannot answer. Without results, their experiments are not on the page.
OPTIONAL = {"lines", "distributed", "nbody"}


def microseconds(time: float) -> str:
    """A time with a suitable unit."""
    return f"{time:.3g} µs" if time < 1000 else f"{time / 1000:.3g} ms"


def rows(cells: Sequence[Sequence[str]]) -> list[str]:
    """A table. The first row is the head."""
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return [lines[0], f"|{' --- |' * len(cells[0])}", *lines[1:]]


def page() -> str:
    """The text of the page, from the kept results."""
    text, last = [HEAD, missing()], ""
    made = [(paper, name, make(records)) for paper, name, make in PARTS if (records := harness.load(name))]
    made = [(paper, name, one) for paper, name, one in made if one.figures]
    text += rows(
        [
            ("experiment", "the paper", "titin", "like for like"),
            *((f"{paper}: {one.name}", one.paper, one.here, one.alike) for paper, _, one in made),
        ]
    )
    for paper, name, one in made:
        data = json.loads((RESULTS / f"{name}.json").read_text())
        text += [f"\n## {paper}\n"] if paper != last else [""]
        last = paper
        text += [f"**{one.name}**; titin and its rivals on {data['machine']}, {data['date']}:\n"]
        text += rows([one.columns, *one.figures])
    return "\n".join(text) + "\n"


def missing() -> str:
    """What is not on the page."""
    sites = "" if all(map(harness.load, ("lines", "distributed"))) else "what runs between sites; "
    return f"Not repeated yet: {sites}the other coupled applications.\n"


def write() -> None:
    """Writes the page, if there are results for all experiments."""
    if all(name in OPTIONAL or harness.load(name) for _, name, _ in PARTS):
        PAGE.write_text(page())


def main() -> None:
    """Measures the missing questions, and writes the page."""
    from benchmarks.__main__ import measure

    for _, name, _ in PARTS:
        if name not in OPTIONAL and not harness.load(name):
            print(f"{name} was not measured yet", flush=True)
            measure(name, quick=False)
    write()
    print(f"{PAGE.relative_to(ROOT)} is written")


if __name__ == "__main__":
    main()
