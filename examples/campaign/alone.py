#!/usr/bin/env python3
"""The pendulum as a command of EasyVVUQ: it reads input.json, and writes output.json."""

import json
from pathlib import Path

from pendulum import angles

given = json.loads(Path("input.json").read_text())
Path("output.json").write_text(json.dumps({"angle": angles(given["length"], given["friction"], given["start"])}))
