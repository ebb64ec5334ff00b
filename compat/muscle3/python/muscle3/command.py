"""The ``titin`` command, as a child of MUSCLE3's commands.

These start fast: what is imported here costs the user of a short run most.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence

_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Child:
    """The ``titin`` command with these arguments, started. Its output and errors are read here.

    SIGTERM and SIGHUP go on to it, and so does SIGINT unless a terminal has sent that to both.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._output, into = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, into, 1), (os.POSIX_SPAWN_DUP2, into, 2), (os.POSIX_SPAWN_CLOSE, into)]
        # A signal before its handler is there would end this process, and leave the child.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
        self._process = os.posix_spawnp(
            titin(), ["titin", *arguments], os.environ, file_actions=actions, setsigmask=before
        )
        os.close(into)
        for number in _PASSED_ON:
            signal.signal(number, self._pass_on)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def lines(self) -> Iterator[str]:
        """The lines that it writes, as they come."""
        with os.fdopen(self._output, encoding="utf-8", errors="replace") as output:
            yield from output

    def wait(self) -> int:
        """Its exit code; 128 and the signal's number if a signal has ended it."""
        code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        self._process = 0
        return 128 - code if code < 0 else code

    def _pass_on(self, number: int, frame: object) -> None:
        if self._process and (number != signal.SIGINT or not os.isatty(0)):
            os.kill(self._process, number)


def titin() -> str:
    """The ``titin`` command of this environment, else that of the PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "titin")
    return beside if os.path.exists(beside) else "titin"
