"""Paths between two hosts: encrypted, and unharmed by cuts of the line and new addresses; ended programs are told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ..native.test_paths import make_key
from .conftest import Hosts

#: One program sends arrays of all sizes, the other one, which is given no address and listens, sends each of them back.
PROGRAM = """\
import hashlib, os, sys, time
import numpy as np
from titin.path import Path, PathListener

ROUNDS = 30
streams = int(sys.argv[1])
if len(sys.argv) == 2:
    with PathListener("0.0.0.0:4711") as listener:
        path = listener.accept()
else:
    path = Path(*sys.argv[2:], streams=streams, outage=60)
random = np.random.default_rng(1)
digest = hashlib.sha256()
with path:
    for number in range(ROUNDS):
        size = int(10 ** random.uniform(0, 6.5))
        array = random.random(size)
        if len(sys.argv) == 2:
            array = path.receive()
            path.send(array)
        else:
            path.send(array)
            array = path.receive()
        digest.update(array.tobytes())
        open("round-" + os.uname().nodename, "w").write(str(number))
        time.sleep(0.03)
        while number == 2 and os.path.exists("stay"):
            time.sleep(0.01)
print(os.uname().nodename, digest.hexdigest(), flush=True)
"""

#: Starts both programs, and does something once both have come to the middle.
TWO = """\
export TITIN_PATH_KEY=$PWD/key
PYTHON program.py $1 >listener 2>&1 & listener=$!
places="10.71.0.1:4711 10.71.0.9:4711"
ssh n2 "cd $PWD && TITIN_PATH_KEY=$PWD/key PYTHON program.py $1 '$places' mesh" >opener 2>&1 & opener=$!
until grep -qs '[1-9]' round-n1; do sleep 0.01; done
$2
wait $listener; wait $opener
cat listener opener
"""

#: What happens to the line.
EVENTS = {
    "nothing": ":",
    "a cut of five seconds": "ip link set second-n2 down; sleep 5; ip link set second-n2 up",
    "a reset of all connections": "ss --kill state established sport = 4711 >/dev/null 2>&1",
    "another address of the listener": "ip address flush dev second; ip address add 10.71.0.9/24 dev second",
    "another address of the opener": "ip -n n2 address flush dev eth1; ip -n n2 address add 10.71.0.8/24 dev eth1",
}


def prepare(folder: Path) -> None:
    make_key(folder)
    (folder / "program.py").write_text(PROGRAM)


def script(folder: Path, text: str, event: str) -> Path:
    file = folder / "two.sh"
    file.write_text(text.replace("PYTHON", sys.executable).replace("$2", event))
    return file


@pytest.mark.parametrize(
    ("event", "streams"),
    [(event, 4) for event in EVENTS] + [("a cut of five seconds", 1), ("a reset of all connections", 1)],
)
def test_what_happens_to_a_line_changes_no_bit(hosts: Hosts, tmp_path: Path, event: str, streams: int) -> None:
    prepare(tmp_path)
    done = hosts(2, "sh", script(tmp_path, TWO, EVENTS[event]), str(streams), SECOND="1")
    assert done.returncode == 0, done.stdout
    words = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in words] == ["n1", "n2"], done.stdout
    assert words[0][1] == words[1][1], done.stdout


#: Kills one of the programs, and prints how the other one ends.
KILLED = """\
export TITIN_PATH_KEY=$PWD/key
PYTHON program.py 2 >listener 2>&1 & listener=$!
ssh n2 "cd $PWD && TITIN_PATH_KEY=$PWD/key exec PYTHON program.py 2 n1:4711 mesh" >opener 2>&1 & opener=$!
until grep -qs 2 round-n1 && grep -qs 2 round-n2; do sleep 0.01; done
# A program that has nothing unread ends by an end, and not by a reset, after which it may come back.
sleep 1
$2
rm stay
wait $listener; wait $opener
tail -n 1 listener; tail -n 1 opener
"""


@pytest.mark.parametrize(
    ("kill", "survivor"),
    [("kill -KILL $listener", 1), ("ssh n2 pkill -KILL -f program.py", 0)],
    ids=["listener", "opener"],
)
def test_a_killed_program_is_told_at_the_other_end(hosts: Hosts, tmp_path: Path, kill: str, survivor: int) -> None:
    prepare(tmp_path)
    (tmp_path / "stay").touch()
    done = hosts(2, "sh", script(tmp_path, KILLED, kill))
    assert done.returncode == 0, done.stdout
    file = ["listener", "opener"][survivor]
    said = (tmp_path / file).read_text()
    # And not because the line was away for too long.
    assert "PeerLost" in said and "`outage`" not in said, (done.stdout, said)
