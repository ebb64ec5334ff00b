"""Models whose programs exist for MUSCLE3's own library and for titin, and how they are run with either."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

from ...conftest import TITIN, muscle3

HERE = Path(__file__).resolve().parent
ORIGINAL = HERE / "original"
TIME_LIMIT = 120  # seconds; only a hang reaches it


@dataclass(frozen=True)
class Model:
    """A model: its components and conduits, the arguments of its programs, its settings."""

    components: str
    conduits: str
    settings: str = "{}"
    arguments: dict[str, list[str]] = field(default_factory=dict)

    def text(self, commands: dict[str, list[str]]) -> str:
        """The description, with the command of each program, to which its arguments are added."""
        programs = "".join(
            f"  {name}:\n    description: a program\n    executable: {command[0]}\n"
            f"    args: {json.dumps([*command[1:], *self.arguments.get(name, [])])}\n"
            for name, command in commands.items()
        )
        return (
            "ymmsl_version: v0.2\ndescription: a test\nmodels:\n  tested:\n    description: a model\n    components:\n"
            f"{indented(self.components, 6)}    conduits:\n{indented(self.conduits, 6)}"
            f"programs:\n{programs}settings: {self.settings}\n"
        )

    @property
    def programs(self) -> list[str]:
        """The names of the programs, which are those of the components' implementations."""
        lines = self.components.splitlines()
        return [
            line.rpartition("implementation: ")[2].partition(",")[0].rstrip("}")
            for line in lines
            if "implementation:" in line
        ]


def indented(text: str, spaces: int) -> str:
    return "".join(f"{' ' * spaces}{line}\n" for line in dedent(text).strip().splitlines())


MODELS = {
    "values": Model(
        """
        sender: {description: sends, ports: {o_i: out, s: in}, implementation: sender}
        echo: {description: answers, ports: {f_init: in, o_f: out}, implementation: echo}
        """,
        """
        sender.out: echo.in
        echo.out: sender.in
        """,
    ),
    "settings": Model(
        """
        steerer: {description: steers, ports: {o_i: settings out, s: done}, implementation: steerer}
        probe:
          description: asks
          ports: {f_init: in lonely many, o_i: out spread, s: back absent, o_f: done}
          implementation: probe
        receiver: {description: receives, multiplicity: 3, ports: {f_init: in}, implementation: receiver}
        """,
        """
        steerer.settings: probe.muscle_settings_in
        steerer.out: probe.in
        probe.done: steerer.done
        probe.spread: receiver.in
        """,
        settings="{text: words, int: 12, float: 1.5, flag: true, ints: [1, 2], floats: [0.5, 0.1], "
        "table: [[1.0, 2.0], [3.0, 4.0]], probe.own: mine, other.own: theirs, deep.name: 3, probe.deep.name: 4}",
    ),
    "resizing": Model(
        """
        counter: {description: counts, ports: {o_i: out}, implementation: counter}
        resizer: {description: sends, ports: {f_init: in, o_f: out}, implementation: resizer}
        receiver: {description: receives, ports: {f_init: in}, implementation: receiver}
        """,
        """
        counter.out: resizer.in
        resizer.out: receiver.in
        """,
        arguments={"receiver": ["vector"]},
    ),
    "members": Model(
        """
        driver: {description: drives, ports: {o_i: out, s: in}, implementation: driver}
        balancer:
          description: balances
          ports: {f_init: front_in, o_i: back_out, s: back_in, o_f: front_out}
          implementation: balancer
        worker: {description: works, multiplicity: 2, ports: {f_init: in, o_f: out}, implementation: worker}
        """,
        """
        driver.out: balancer.front_in
        balancer.back_out: worker.in
        worker.out: balancer.back_in
        balancer.front_out: driver.in
        """,
    ),
    "checkpoints": Model(
        """
        sender: {description: sends, ports: {o_i: out, s: in}, implementation: sender}
        keeper: {description: answers, ports: {f_init: in, o_f: out}, implementation: keeper}
        """,
        """
        sender.out: keeper.in
        keeper.out: sender.in
        """,
    ),
}


def run(model: Model, commands: dict[str, list[str]], folder: Path, *, original: bool = False) -> dict[str, str]:
    """Runs a model, which must end well, with titin or with MUSCLE3. Returns what each instance has written."""
    folder.mkdir(parents=True, exist_ok=True)
    description, run_dir = folder / "model.ymmsl", folder / "run"
    description.write_text(model.text(commands))
    if original:
        run_dir.mkdir()
    starts = [sys.executable, "-m", "muscle3.muscle_manager", "--start-all"] if original else [TITIN, "run"]
    folders = [ORIGINAL, muscle3("0.11")] if original else []
    done = subprocess.run(
        [*starts, "--run-dir", run_dir, description],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=TIME_LIMIT,
    )
    said = "".join(file.read_text() for file in run_dir.glob("instances/*/stderr.txt"))
    assert done.returncode == 0, done.stdout + said
    return {file.parent.name: file.read_text() for file in sorted(run_dir.glob("instances/*/stdout.txt"))}


def original_commands(model: Model) -> dict[str, list[str]]:
    """The programs of MUSCLE3's own library, in Python."""
    return {name: [sys.executable, str(ORIGINAL / f"{name}.py")] for name in model.programs}
