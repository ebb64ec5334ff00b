"""Answers every message. Writes the error that ends the program to a folder, which is the argument."""

import os
import sys
from pathlib import Path

import titin

folder = Path(sys.argv[1])
connection = Path(os.environ.get("TITIN_MANAGER") or os.environ["MUSCLE_MANAGER"])
(folder / "connection.json").write_text(connection.read_text())
(folder / "mode").write_text(oct(connection.stat().st_mode & 0o777))

with titin.Instance(f_init=["in"], o_f=["out"]) as instance:
    try:
        while instance.reuse():
            message = instance.receive("in")
            instance.send("out", message.data, timestamp=message.timestamp)
    except titin.Error as error:
        (folder / "error").write_text(f"{type(error).__name__}: {error}")
        raise
