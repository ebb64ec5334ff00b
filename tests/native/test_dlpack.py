"""Arrays of DLPack in C, to and from a program in Python."""

from __future__ import annotations

import sys
from pathlib import Path

from .conftest import Build, run

MODEL = """\
ymmsl_version: v0.2
models:
  tensors:
    components:
      asks: {{ports: {{o_i: out, s: in}}, implementation: asks}}
      echo: {{ports: {{s: in, o_i: out}}, implementation: echo}}
    conduits:
      asks.out: echo.in
      echo.out: asks.in
programs:
  asks: {{executable: {asks}}}
  echo: {{executable: {python}, args: [{echo}]}}
"""

#: Sends back what it gets: arrays as they are seen by DLPack, and as NumPy's.
ECHO = """\
import numpy as np
import titin

with titin.Instance(s=["in"], o_i=["out"], unchecked="answers") as instance:
    while instance.reuse():
        while True:
            try:
                msg = instance.receive("in")
            except titin.PortClosed:
                break
            data = np.from_dlpack(msg.data) if isinstance(msg.data, np.ndarray) else msg.data
            instance.send("out", data, timestamp=msg.timestamp)
"""


def test_tensors_there_and_back(build: Build, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    asks = build("dlpack", "c")
    run(tmp_path, MODEL.format(asks=asks, python=sys.executable, echo=tmp_path / "echo.py"))
