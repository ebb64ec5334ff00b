"""The common part of all benchmarks: timing in turn, the statistics, the records and the table.

A figure without its rival beside it is not a result. Each round times titin and then the rival; the order swaps every
round, so that other work of the machine falls on both. The ratio is the median of the rounds' ratios, with an interval
of at least 95 % from order statistics (without an assumption about the distribution). Where a slow rival has fewer
rounds, the ratio is the ratio of the medians, and its interval spans the ratios that the two intervals allow. Below six
rounds no order statistic reaches 95 %, and the whole range takes the interval's place.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
#: The folder for the figures of quick runs, which are no results.
LOOKS = ROOT / "build" / "benchmarks" / "looks"
PROGRAMS = ROOT / "benchmarks" / "programs"
RIVALS = ROOT / "build" / "rivals"
MUSCLE3 = "muscle3==0.11.0"
KIB, MIB = 1 << 10, 1 << 20

#: The sizes in the table. The records and the pictures have all sizes. A row with a target is always shown.
SHOWN = {None, 0, 64, 256, KIB, 64 * KIB, MIB, 64 * MIB}

#: The figures of a sweep: by contender and case, a figure for each round.
Figures = dict[str, dict[Any, list[float]]]

PAIR = """\
ymmsl_version: v0.2
description: A pair that passes one message to and fro.
models:
  pair:
    components:
      macro:
        description: sends and receives
        ports: {{o_i: out, s: in}}
        implementation: macro
      micro:
        description: answers
        ports: {{f_init: in, o_f: out}}
        implementation: micro
    conduits:
      macro.out: micro.in
      micro.out: macro.in
programs:
  macro: {{executable: {program}, args: {macro}}}
  micro: {{executable: {program}, args: {micro}}}
resources:
  pair.macro: {{threads: 1}}
  pair.micro: {{threads: 1}}
"""


@dataclass
class Record:
    """One answer: titin's figure, the rival's figure, and their ratio (below 1, titin is better)."""

    question: str
    case: str
    size_bytes: int | None
    titin: float
    rival_name: str
    rival: float
    unit: str
    ratio: float
    #: The ratio to reach.
    target: float | None
    rounds: int
    rival_rounds: int = 0
    #: The figure that titin itself is to reach, where the target is no ratio.
    limit: float | None = None
    spread: dict[str, list[float]] = field(default_factory=dict)


def interval(samples: Sequence[float]) -> tuple[float, float]:
    """The narrowest interval of order statistics that holds the median with 95 % or more; the whole range of fewer than
    six."""
    ordered = sorted(samples)
    count = len(ordered)
    # The median is outside if at most `low` samples lie on one side of it. Each sample lies there with probability 1/2.
    low, rare = 0, 1 / 2**count
    while 2 * (rare := rare + math.comb(count, low + 1) / 2**count) <= 0.05:
        low += 1
    return ordered[low], ordered[count - 1 - low]


def compare(
    question: str,
    case: str,
    pairs: Sequence[tuple[float, float]],
    *,
    rival: str,
    unit: str,
    alone: Sequence[float] = (),
    size: int | None = None,
    target: float | None = None,
    limit: float | None = None,
) -> Record:
    """Makes a record of rounds. ``pairs`` has titin's figure and the rival's of each round, ``alone`` titin's figures
    of rounds without a rival."""
    ours, theirs = [a for a, _ in pairs] + list(alone), [b for _, b in pairs]
    if alone:
        ratio = statistics.median(ours) / statistics.median(theirs)
        (low, high), (least, most) = interval(ours), interval(theirs)
        reach = (low / most, high / least)
    else:
        ratios = [a / b for a, b in pairs]
        ratio, reach = statistics.median(ratios), interval(ratios)
    return Record(
        question,
        case,
        size,
        statistics.median(ours),
        rival,
        statistics.median(theirs),
        unit,
        ratio,
        target,
        len(ours),
        len(theirs),
        limit,
        {"titin": list(interval(ours)), "rival": list(interval(theirs)), "ratio": list(reach)},
    )


def beside_all(
    question: str,
    case: str,
    times: Mapping[str, Sequence[float]],
    *,
    unit: str,
    target: float | None,
    size: int | None = None,
) -> list[Record]:
    """A record for each rival; ``times`` has all figures, round by round. The record of the best rival has the
    target, if there is one."""
    rivals = [name for name in times if name != "titin"]
    best = min(rivals, key=lambda name: statistics.median(times[name]))
    return [
        compare(
            question,
            case,
            list(zip(times["titin"], times[name], strict=True)),
            rival=name,
            unit=unit,
            size=size,
            target=target if name == best else None,
        )
        for name in rivals
    ]


def alternate(rounds: int, titin: Callable[[], float], rival: Callable[[], float]) -> list[tuple[float, float]]:
    """Times titin and the rival in every round, titin first in even rounds."""
    pairs = []
    for number in range(rounds):
        if number % 2 == 0:
            ours = titin()
            theirs = rival()
        else:
            theirs = rival()
            ours = titin()
        pairs.append((ours, theirs))
        progress(f"round {number + 1}/{rounds}")
    progress("")
    return pairs


def sweep(rounds: int, contenders: Mapping[str, Callable[[], Mapping[Any, float]]]) -> Figures:
    """Times all contenders in every round, each by a call that gives a figure for every case. The first contender
    changes from round to round."""
    names = list(contenders)
    figures: Figures = {name: {} for name in names}
    for number in range(rounds):
        begin = number % len(names)
        for name in names[begin:] + names[:begin]:
            progress(f"round {number + 1}/{rounds}: {name}")
            for case, figure in contenders[name]().items():
                figures[name].setdefault(case, []).append(figure)
    progress("")
    return figures


def in_parts(
    name: str, variable: str, parts: Mapping[str, Callable[[bool], list[Record]]], default: str, quick: bool
) -> list[Record]:
    """Measures the parts of a question that an environment variable chooses, else the ``default``, else all of them.
    Records of other parts are kept, and each part is saved once it is measured."""
    words = (os.environ.get(variable) or default or " ".join(parts)).split()
    # A word that is the beginning of names chooses all of them.
    by_word = {word: [part for part in parts if f"{part}/".startswith(f"{word}/")] for word in words}
    if unknown := [word for word, of_word in by_word.items() if not of_word]:
        raise SystemExit(f"{variable}: there is no {unknown[0]}; there are {', '.join(parts)}")
    chosen = list(dict.fromkeys(part for of_word in by_word.values() for part in of_word))
    found: list[Record] = []
    for part in chosen:
        print(f"  {part}", flush=True)
        new = parts[part](quick)
        fresh = {whole(record) for record in new}
        kept = found if quick else load(name)
        found = [record for record in kept if whole(record) not in fresh] + new
        if not quick and part != chosen[-1]:
            save(name, found, quick=False, new=new)
    return found


def whole(record: Record) -> tuple[str, str]:
    """What a record belongs to, and is measured again with."""
    return record.question, record.case.partition(":")[0]


def progress(text: str) -> None:
    """Shows the present work on a line of the terminal that the next text replaces."""
    if sys.stderr.isatty():
        print(f"\r\033[K  {text}" if text else "\r\033[K", end="", file=sys.stderr, flush=True)


def pair(program: Path, macro: Sequence[object], micro: Sequence[object]) -> str:
    """The model of a macro and a micro model, which are one program with different arguments."""
    arguments = [json.dumps([str(word) for word in words]) for words in (macro, micro)]
    return PAIR.format(program=program, macro=arguments[0], micro=arguments[1])


#: Stands for a component whose instance the program of the component before it runs.
HOSTED: tuple[str, Sequence[object]] = ("", ())


def stepping(programs: Sequence[tuple[str | Path, Sequence[object]]], conduits: Sequence[str] = ()) -> str:
    """The model of components c0, c1 and so on, each an executable with arguments, that exchange messages in each step.

    ``conduits`` are lines "c0.out: c1.in". Without conduits each component sends to the next, and the last to the
    first.
    """
    count = len(programs)
    lines = conduits or [f"c{number}.out: c{(number + 1) % count}.in" for number in range(count)]
    sending: dict[str, list[str]] = {}
    receiving: dict[str, list[str]] = {}
    for line in lines:
        sender, _, receivers = line.partition(": ")
        for end, ports in [(sender, sending), *((end, receiving) for end in receivers.strip("[]").split(", "))]:
            component, _, port = end.partition(".")
            ports.setdefault(component, []).append(port)
    text = ["ymmsl_version: v0.2", "description: For timing.", "models:", "  stepping:", "    components:"]
    for number in range(count):
        text += [f"      c{number}:", "        description: one of them", f"        implementation: p{number}"]
        o_i, s = (" ".join(ports.get(f"c{number}", [])) for ports in (sending, receiving))
        text.append(f"        ports: {{o_i: [{o_i.replace(' ', ', ')}], s: [{s.replace(' ', ', ')}]}}")
    text += ["    conduits:", *(f"      {line}" for line in lines), "programs:"]
    for number, (program, words) in enumerate(programs):
        if not program:
            text.append(f"  p{number}: {{execution_model: manual}}")
            continue
        arguments = json.dumps([str(word) for word in words])
        text.append(f"  p{number}: {{executable: {program}, args: {arguments}}}")
    text += ["resources:", *(f"  stepping.c{number}: {{threads: 1}}" for number in range(count))]
    return "\n".join(text) + "\n"


def rival_python() -> Path:
    """The Python of an environment with the rivals. The first call makes the environment."""
    python = RIVALS / "bin" / "python"
    if not python.exists():
        print("  setting up the rivals' Python environment", file=sys.stderr)
        venv.create(RIVALS, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", MUSCLE3, "numpy"], check=True)
    return python


def run(command: Sequence[object], folder: Path, **environment: str) -> str:
    """Runs a command to its end and returns its standard output. If the command fails, its output is shown."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        words = " ".join(str(word) for word in command)
        raise SystemExit(f"{words} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}")
    return done.stdout


def scratch(place: Path = Path("/dev/shm")) -> tempfile.TemporaryDirectory[str]:
    """A folder for one run, in memory if there is such a place: the disk is no part of a benchmark of messages."""
    return tempfile.TemporaryDirectory(dir=place if place.is_dir() else None)


def machine() -> str:
    """The machine, on one line."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores, Linux {platform.release()}"


def named(size: int) -> str:
    """A size with its unit."""
    return f"{size} B" if size < KIB else f"{size // KIB} KiB" if size < MIB else f"{size // MIB} MiB"


def save(
    name: str,
    records: Sequence[Record],
    *,
    quick: bool,
    took: float | None = None,
    new: Sequence[Record] | None = None,
) -> None:
    """Writes the records of one question, and the seconds that they took; prints the records, or the new ones alone."""
    folder = LOOKS if quick else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        "machine": machine(),
        "date": date.today().isoformat(),
        "took_seconds": took if took is None else round(took),
        "records": [asdict(record) for record in records],
    }
    (folder / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
    for record in shown(records if new is None else new):
        print("  " + describe(record))


def load(name: str) -> list[Record]:
    """The records of one question from the last full measurement; none if there was no full measurement."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return []
    return [Record(**record) for record in json.loads(path.read_text())["records"]]


def shown(records: Sequence[Record]) -> list[Record]:
    """The records that are worth a line."""
    return [record for record in records if record.size_bytes in SHOWN or aim(record)]


def describe(record: Record) -> str:
    """A record on one line."""
    low, high = record.spread["ratio"]
    target = f", target {aim(record)}" if aim(record) else ""
    return (
        f"{record.case}: titin {record.titin:.4g} {record.unit}, {record.rival_name} "
        f"{record.rival:.4g} {record.unit}, ratio {record.ratio:.3g} [{low:.3g}, {high:.3g}]{target}"
    )


def aim(record: Record) -> str:
    """The target of a record, in words: a ratio, or titin's own figure."""
    if record.limit is not None:
        return f"{record.limit:g} {record.unit}"
    return "" if record.target is None else f"{record.target:g}"


def reached(record: Record) -> str:
    """Whether the record has reached its target, or only its interval has."""
    figure, spread, wanted = record.titin, record.spread["titin"], record.limit
    if wanted is None:
        figure, spread, wanted = record.ratio, record.spread["ratio"], record.target
    assert wanted is not None, record.case
    return "yes" if figure <= wanted else "within the interval" if spread[0] <= wanted else "**no**"


def table() -> None:
    """Writes the targets and the tables of all results into benchmarks/README.md, between the marks for them."""
    readme = ROOT / "benchmarks" / "README.md"
    results = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    found = {name: [Record(**record) for record in data["records"]] for name, data in results.items()}
    text = between(readme.read_text(), "targets", targets(found))
    lines = []
    for name, data in results.items():
        by_question: dict[str, list[Record]] = {}
        for record in shown(found[name]):
            by_question.setdefault(record.question, []).append(record)
        for question, records in by_question.items():
            lines += [
                f"\n**{question}** ({data['machine']}; {data['date']})\n",
                "| case | titin | rival | | ratio [95 %] | target | rounds |",
                "| --- | ---: | ---: | --- | ---: | ---: | ---: |",
                *map(row, records),
            ]
        if (RESULTS / f"{name}.svg").exists():
            lines.append(f"\n![The figures of `{name}` in a picture](results/{name}.svg)")
    readme.write_text(between(text, "results", lines))


def targets(found: Mapping[str, Sequence[Record]]) -> list[str]:
    """A table of all records with a target, and whether each has reached the target."""
    lines = ["| question | case | titin | rival | ratio | target | reached |"]
    lines.append("| --- | --- | ---: | --- | ---: | ---: | --- |")
    for name, records in found.items():
        lines += [
            f"| `{name}` | {record.case} | {record.titin:.4g} {record.unit} | {record.rival:.4g} {record.unit}, "
            f"{record.rival_name} | {record.ratio:.3g} | {aim(record)} | {reached(record)} |"
            for record in records
            if aim(record)
        ]
    return lines


def row(record: Record) -> str:
    """A record as a line of its question's table."""
    low, high = record.spread["ratio"]
    rounds = str(record.rounds)
    if record.rival_rounds not in (0, record.rounds):
        rounds += f" and {record.rival_rounds}"
    return (
        f"| {record.case} | {record.titin:.4g} {record.unit} | {record.rival:.4g} {record.unit} "
        f"| {record.rival_name} | {record.ratio:.3g} [{low:.3g}, {high:.3g}] | {aim(record)} | {rounds} |"
    )


def between(text: str, mark: str, lines: Sequence[str]) -> str:
    """The text with these lines between the comments of the mark."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    before, rest = text.split(begin, 1)
    return before + begin + "\n".join(lines) + "\n" + end + rest.split(end, 1)[1]
