"""docs/bmi.md: its walk from two models to a run, as printed."""

from __future__ import annotations

import os
import re
import subprocess

from ..conftest import ROOT
from .conftest import LIMIT, MODELS

PAGE = (ROOT / "docs/bmi.md").read_text()


def alike(said, printed):
    """Whether an output is as printed; `...` stands for anything."""
    pattern = "".join(".*" if part == "..." else re.escape(part) for part in re.split(r"(\.\.\.)", printed.strip()))
    return re.fullmatch(pattern, said.strip(), re.DOTALL)


def test_the_walk_goes_as_printed(stage):
    for name, text in re.findall(r'^```\w+ title="(.+?)"\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL):
        stage.write(name, text)
    env = os.environ | {"PYTHONPATH": str(MODELS)}
    session = "".join(re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE)
    assert len(steps) == 5
    for command, printed in steps:
        done = subprocess.run(
            command,
            shell=True,
            cwd=stage.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode == 0, done.stdout
        assert alike(done.stdout, printed), done.stdout
