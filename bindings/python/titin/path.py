"""Paths: messages between two programs that share a key, without a run.

>>> with PathListener("0.0.0.0:4711").accept() as path:         # one program
...     u = path.receive()
>>> with Path("cluster.example:4711") as path:                  # the other program
...     path.send(u)
"""

from titin._core import Path, PathListener, Request, wait_any

__all__ = ["Path", "PathListener", "Request", "wait_any"]
