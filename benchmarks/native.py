"""The programs in C that benchmarks couple, built against the installed package."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from benchmarks.harness import PROGRAMS, ROOT

TITIN = Path(sys.executable).parent / "titin"


def build(name: str) -> Path:
    """Compiles ``programs/NAME.c``; the executable."""
    folder = ROOT / "build" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    flags = subprocess.run([TITIN, "config", "--cflags", "--libs"], capture_output=True, text=True, check=True)
    executable = folder / name
    command = ["cc", "-O2", "-Wall", "-o", executable, PROGRAMS / f"{name}.c", *shlex.split(flags.stdout)]
    subprocess.run(command, check=True)
    return executable
