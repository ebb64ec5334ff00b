"""A ping-pong of titin over a long line. Arguments: ``there``; or ``here``, the sizes, the patience, the processes that
are watched, the file for the times, and the kind of the messages' bytes (see `lines_play.play`)."""

import sys
from pathlib import Path

import numpy as np
import titin
from lines_play import groups, play


def here(sizes: str, patience: str, watched: str, path: str, contents: str) -> None:
    """Sends messages and takes the times. An empty message is the last one."""
    with titin.Instance(o_i=["out"], s=["in"]) as instance:
        while instance.reuse():

            def exchange(message: np.ndarray) -> None:
                instance.send("out", message, timestamp=0.0)
                instance.receive("in")

            numbers = [int(size) for size in sizes.split(",")]
            lines = play(exchange, numbers, float(patience), groups(watched), contents)
            instance.send("out", np.zeros(0, np.uint8), timestamp=0.0)
    Path(path).write_text("".join(lines))


def there() -> None:
    """Answers messages by eight bytes each."""
    answer = np.zeros(1)
    with titin.Instance(s=["in"], o_i=["out"]) as instance:
        while instance.reuse():
            while instance.receive("in").data.size > 0:
                instance.send("out", answer, timestamp=0.0)


if sys.argv[1] == "there":
    there()
else:
    here(*sys.argv[2:])
