"""How a program that is started by hand finds its run."""

from __future__ import annotations

import json
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

#: One that fails leaves the secret there for the next.
ATTEMPT = """
try:
    titin.Instance(o_i=["1wrong"])
except titin.UsageError:
    print(*known())
"""


@pytest.mark.parametrize("attempt", ["", ATTEMPT], ids=["once", "again"])
def test_the_secret_leaves_the_environment(stage, manage, attempt):
    """Of this process, of its ``os.environ``, and so of its children."""
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
