"""The cost of a ring of eight instances on two cores: the time of a turn, and processor time while nothing moves."""

from __future__ import annotations

from pathlib import Path

from benchmarks import native
from benchmarks.harness import Record, compare, run, scratch, stepping, sweep

CELLS = 8
TURN = f"A token round a ring of {CELLS} instances on 2 cores, for each hop"
IDLE = f"A ring of {CELLS} instances on 2 cores that waits: share of one core that it takes"
RIVAL = "Open MPI, yielding"


def figures_of(folder: Path) -> dict[str, float]:
    """Microseconds a hop, and percent of a core, from the files of the cells."""
    used = passed = hop = 0.0
    for cell in range(CELLS):
        lines = [line.split() for line in (folder / f"cell.{cell}").read_text().splitlines()]
        if cell == 0:
            hop = 1e6 * float(lines[0][1]) / CELLS
        used += float(lines[-1][0])
        passed = max(passed, float(lines[-1][1]))
    return {"turn": hop, "idle": 100 * used / passed}


def main(quick: bool) -> list[Record]:
    """Runs titin and the rival once in every round; a run gives both figures."""
    rounds, turns, idle = (2, 500, 0.5) if quick else (15, 5000, 1.0)
    program, mpi = native.build("ring_titin"), native.rival("ring_mpi", "openmpi")

    def titin() -> dict[str, float]:
        with scratch() as name:
            folder = Path(name)
            cells = [(program, [cell, turns, idle, folder / "cell"]) for cell in range(CELLS)]
            native.titin_run(stepping(cells), folder, cores=2)
            return figures_of(folder)

    def other() -> dict[str, float]:
        with scratch() as name:
            folder = Path(name)
            starter = [*native.on_cores(2), *native.OPEN_MPI_YIELD, "-np", CELLS]
            run([*starter, mpi, turns, idle, folder / "cell"], folder)
            return figures_of(folder)

    figures = sweep(rounds, {"titin": titin, RIVAL: other})
    turn, wait = (list(zip(figures["titin"][key], figures[RIVAL][key])) for key in ("turn", "idle"))
    return [
        compare(TURN, "one hop", turn, rival=RIVAL, unit="µs", target=1.0),
        compare(IDLE, f"idle for {idle:g} s", wait, rival=RIVAL, unit="%", limit=1.0),
    ]
