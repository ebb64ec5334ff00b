"""The figures of ``make soak``: what was done to runs over sites, and the largest memory of each kind of process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.harness import LOOKS, RESULTS, ROOT, between, machine


def save(tests: Mapping[str, Mapping[str, Any]], *, quick: bool) -> Path:
    """Writes the figures of tests beside those of other tests, and those of a full soak also into the tables of
    benchmarks/README.md. Returns the file.

    Each test has ``seconds``, and may have ``memory_mib`` by the kind of process, ``kills`` by victim, and facts of any
    other name.
    """
    folder = LOOKS if quick else RESULTS / "soak"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "soak.json"
    found = json.loads(path.read_text())["tests"] if path.exists() else {}
    found |= {name: {"date": date.today().isoformat(), **figures} for name, figures in tests.items()}
    data = {"machine": machine(), "tests": dict(sorted(found.items()))}
    path.write_text(json.dumps(data, indent=1) + "\n")
    if not quick:
        readme = ROOT / "benchmarks" / "README.md"
        readme.write_text(between(readme.read_text(), "soak", rows(data)))
    return path


def rows(data: Mapping[str, Any]) -> list[str]:
    """The table of the tests, and that of the kills."""
    lines = [
        f"\nOn {data['machine']}:\n",
        "| test | date | seconds | what | largest memory, MiB |",
        "| --- | --- | ---: | --- | --- |",
    ]
    kills = ["| test | killed | times | median until the end | longest | late | not named | left something |"]
    kills.append("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, found in data["tests"].items():
        test = name.removeprefix("test_").replace("_", " ")
        figures = dict(found)
        memory, killed = figures.pop("memory_mib", {}), figures.pop("kills", {})
        day, seconds = figures.pop("date"), figures.pop("seconds")
        facts = ", ".join(f"{text.replace('_', ' ')} {figure}" for text, figure in figures.items())
        most = ", ".join(f"{kind} {size:g}" for kind, size in memory.items())
        lines.append(f"| {test} | {day} | {seconds:.0f} | {facts} | {most} |")
        for victim, kill in killed.items():
            kills.append(
                f"| {test} | {victim} | {kill['times']} | {kill['median']:.2f} s | {kill['longest']:.2f} s "
                f"| {kill['late']} | {kill['not_named']} | {kill['left']} |"
            )
    return [*lines, "", *kills]
