"""A program of titin's that uses a model once for each of its steps, and keeps the answers.

Ports: ``ask`` (O_I) and ``answer`` (S). Each use gets a level, and the setting ``cells`` by an overlay.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import titin

kept = []
with titin.Instance(o_i=["ask"], s=["answer"]) as instance:
    instance.reuse()
    for step in range(3):
        level = instance.setting("levels", list[float])[step]
        overlay = {"steps": step + 1}
        data = {"data": np.float32(level), "units": "L"} if step == 1 else level
        instance.send("ask", data, timestamp=100.0 * step, settings=overlay)
        message = instance.receive("answer")
        data = message.data
        kept.append((message.timestamp, data["data"] if isinstance(data, dict) else data, isinstance(data, dict)))
Path("kept.pickle").write_bytes(pickle.dumps([(time, np.array(data), told) for time, data, told in kept]))
