"""How a program that the user starts finds its run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from .conftest import pair

PROGRAM = """
import os
import subprocess
import titin

def known():
    child = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    return os.environ.get("TITIN_SECRET", "")[:8], "TITIN_SECRET" in child

{attempt}
with titin.Instance() as instance:
    while instance.reuse():
        pass
print(*known())
"""

#: A failed attempt leaves the secret in place for the next attempt.
ATTEMPT = """
try:
    titin.Instance(o_i=["1wrong"])
except titin.UsageError:
    print(*known())
"""


@pytest.mark.parametrize("attempt", ["", ATTEMPT], ids=["once", "again"])
def test_the_secret_leaves_the_environment(stage, manage, attempt):
    """The secret leaves the environment of this process, its ``os.environ``, and so the environment of its children."""
    manager = manage(pair().text())
    connection = json.loads(manager.connection.read_text())
    program = stage.program("program", PROGRAM.format(attempt=attempt))
    joined = [
        manager.start(
            sys.executable,
            program,
            TITIN_INSTANCE=name,
            TITIN_MANAGER=connection["addresses"][0],
            TITIN_SECRET=connection["secret"],
        )
        for name in ("sender", "receiver")
    ]
    before = f"{connection['secret'][:8]} True\n" if attempt else ""
    for process in joined:
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        assert output == before + " False\n"
    code, output = manager.wait()
    assert code == 0, output


BOTH = """
import os
import threading
import traceback
import titin

def play(name):
    with titin.Instance(name=name) as instance:
        while instance.reuse():
            if name == "sender":
                instance.send("out", name, timestamp=0.0)
            else:
                found.append(instance.receive("in").data)

def excepthook(raised):
    traceback.print_exception(raised.exc_value)
    # The other waits for one that will not come.
    os._exit(1)

threading.excepthook = excepthook

found = []
threads = [threading.Thread(target=play, args=(name,)) for name in ("sender", "receiver")]
for thread in threads:
    thread.start()
    # The second one comes when the secret has gone.
    while "TITIN_SECRET" in os.environ:
        pass
for thread in threads:
    thread.join()
print(found)
"""


def test_two_instances_by_one_secret(stage, manage):
    manager = manage(pair().text())
    connection = json.loads(manager.connection.read_text())
    variables = {"TITIN_MANAGER": connection["addresses"][0], "TITIN_SECRET": connection["secret"]}
    done = manager.run(sys.executable, stage.program("both", BOTH), **variables)
    assert done.stdout == "['sender']\n", done.stderr
    code, output = manager.wait()
    assert code == 0, output


@pytest.mark.parametrize("manager", [b"/tmp/\xff", b"/dev/zero"], ids=["bytes", "endless"])
def test_what_cannot_be_a_connection_file_is_told(manager):
    """A process that may use 4 GB opens the instance: reading an endless file would fill that memory."""
    program = "import resource, titin\nresource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\ntitin.Instance()"
    environment = os.environb | {b"TITIN_INSTANCE": b"alone", b"TITIN_MANAGER": manager}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    said = {
        b"/tmp/\xff": r'TITIN_MANAGER is "/tmp/\xFF", which is not UTF-8',
        b"/dev/zero": "it is too large to be one",
    }
    assert said[manager] in done.stderr, done.stderr
