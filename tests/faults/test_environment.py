"""A program whose Python is not the one that has titin."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from .conftest import Run

Start = Callable[..., Run]


def test_a_python_without_titin(start: Start, tmp_path: Path) -> None:
    """The report names the Python that has titin, and the advice helps."""
    program = tmp_path / "program.py"
    program.write_text("#!/usr/bin/env python3\nimport titin\nwith titin.Instance() as instance: instance.reuse()\n")
    program.chmod(0o755)
    # Isolated, Python sees nothing but its own library.
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "python3").write_text(f'#!/bin/sh\nexec {os.path.realpath(sys.executable)} -I -S "$@"\n')
    (bare / "python3").chmod(0o755)
    model = (
        "ymmsl_version: v0.2\nmodels: {{alone: {{components: {{solver: {{implementation: solver}}}}}}}}\n"
        "programs: {{solver: {{executable: ./program.py, {}}}}}\n"
    )
    lacking = start(model=model.format(f"env: {{PATH: '{bare}:/usr/bin:/bin'}}"))
    assert lacking.wait() == 1
    assert "ModuleNotFoundError: No module named 'titin'" in lacking.output
    assert f"source {sys.prefix}/bin/activate" in lacking.output
    assert f"virtual_env: {sys.prefix}" in lacking.output
    having = start(model=model.format(f"virtual_env: {sys.prefix}"), directory="again")
    assert having.wait() == 0, having.output
