"""The ``titin`` command beside this process, for a run some of whose instances are in this process or its children."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from muscle3.command import titin

_LOCATION = "export TITIN_MANAGER="


class Serving:
    """A run that the ``titin`` command serves: for instances that are started by hand it tells where it is.

    ``arguments``: those of the command, ``manager`` or ``run`` with what else it needs; ``text``: its standard input.
    An exception that leaves the ``with`` block ends the run. Raises RuntimeError if the run cannot begin.
    """

    def __init__(self, arguments: Sequence[str], text: str = "") -> None:
        self._process = subprocess.Popen(
            [titin(), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._said: list[str] = []
        self._told = threading.Event()
        self.location = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._process.stdin is not None
        try:
            with self._process.stdin as stdin:
                stdin.write(text)
        except BrokenPipeError:
            pass  # it has refused its arguments already, and says so
        self._told.wait()
        if not self.location:
            self._process.wait()
            self._reader.join()
            raise RuntimeError(f"The run could not begin:\n{self.said}")

    @property
    def said(self) -> str:
        """What the command has written so far, the report of a failed run above all."""
        return "".join(self._said)

    def end(self) -> None:
        """Waits for the end of the run. Raises RuntimeError with the report if the run has failed."""
        code = self._process.wait()
        self._reader.join()
        if code != 0:
            raise RuntimeError(f"The run has failed:\n{self.said}")

    def terminate(self) -> None:
        """Ends the run as failed, if it goes on yet. Does not wait."""
        if self._process.poll() is None:
            self._process.terminate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.terminate()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self._said.append(line)
                if not self.location and line.startswith(_LOCATION):
                    self.location = line.removeprefix(_LOCATION).strip()
                    self._told.set()
        self._told.set()
