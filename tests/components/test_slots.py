"""Titin's own components beside programs whose vector ports count their slots at run time."""

import json
import subprocess
import sys

WATCHDOG = 120  # seconds; only a hang takes so long

SENDER = """
import titin
with titin.Instance(o_i=["out[]"]) as instance:
    while instance.reuse():
        for step, slots in enumerate([2, 3, 1]):
            instance.port("out").slots = slots
            for slot in range(slots):
                instance.send("out", [step, slot], timestamp=step, slot=slot)
"""

RECEIVER = """
import titin
with titin.Instance(f_init=["in[]"]) as instance:
    while instance.reuse():
        print([instance.receive("in", slot=slot).data for slot in range(instance.port("in").slots)])
"""

MODEL = """
ymmsl_version: v0.2
models:
  m:
    components:
      sender: {{description: sends by slots, ports: {{o_i: out}}, implementation: sender}}
      merger: {{description: joins them, ports: {{f_init: in, o_f: out}}, implementation: titin.merger}}
      splitter: {{description: parts them, ports: {{f_init: in, o_f: out}}, implementation: titin.splitter}}
      sink: {{description: keeps them, ports: {{s: in}}, implementation: titin.sink}}
      receiver: {{description: receives by slots, ports: {{f_init: in}}, implementation: receiver}}
    conduits:
      sender.out: [merger.in, sink.in]
      merger.out: splitter.in
      splitter.out: receiver.in
programs:
  sender: {{executable: {python}, args: [{folder}/sender.py]}}
  receiver: {{executable: {python}, args: [{folder}/receiver.py]}}
settings: {{how: list}}
"""


def test_components_count_slots_where_their_peers_do(tmp_path):
    (tmp_path / "sender.py").write_text(SENDER)
    (tmp_path / "receiver.py").write_text(RECEIVER)
    (tmp_path / "model.ymmsl").write_text(MODEL.format(python=sys.executable, folder=tmp_path))
    command = ["titin", "run", "model.ymmsl", "--run-dir", "run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WATCHDOG)
    assert done.returncode == 0, done.stderr
    instances = tmp_path / "run/instances"
    received = (instances / "receiver/stdout.txt").read_text().splitlines()
    steps = [[[step, slot] for slot in range(slots)] for step, slots in enumerate([2, 3, 1])]
    assert received == [str(step) for step in steps]
    third = (instances / "sink/workdir/in_2.jsonl").read_text().splitlines()
    assert [json.loads(line)["data"] for line in third] == [[1, 2]]
