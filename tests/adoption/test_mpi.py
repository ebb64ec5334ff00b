"""A parallel program in Python gives its communicator and a root, as MUSCLE3's C++ programs do."""

from __future__ import annotations

import json
import sys

import pytest

from ..conftest import needs
from .systems import TITIN, outcome

MACRO = """
import json
from libmuscle import Instance, Message
from mpi4py import MPI
from ymmsl import Operator

rank = MPI.COMM_WORLD.Get_rank()
instance = Instance({Operator.O_I: ["out"], Operator.S: ["back"]}, communicator=MPI.COMM_WORLD, root=ROOT)
while instance.reuse_instance():
    for step in range(3):
        instance.send("out", Message(step, None, [rank, step]))
        message = instance.receive("back")
        with open(f"rank_{rank}.jsonl", "a") as file:
            print(json.dumps([rank, instance.get_setting("k"), message.timestamp, message.data]), file=file)
"""

MICRO = """
from libmuscle import Instance
from ymmsl import Operator

instance = Instance({Operator.F_INIT: ["in"], Operator.O_F: ["final"]})
while instance.reuse_instance():
    instance.send("final", instance.receive("in"))
"""


@pytest.mark.parametrize("root", [0, 1])
def test_the_root_sends_and_all_ranks_receive(root, tmp_path):
    needs("mpirun.openmpi")
    (tmp_path / "macro.py").write_text(MACRO.replace("ROOT", str(root)))
    (tmp_path / "micro.py").write_text(MICRO)
    path = tmp_path / "parallel.ymmsl"
    path.write_text(f"""
ymmsl_version: v0.2
models:
  parallel:
    components:
      macro: {{description: of two ranks, ports: {{o_i: out, s: back}}, implementation: macro}}
      micro: {{description: of one, ports: {{f_init: in, o_f: final}}, implementation: micro}}
    conduits: {{macro.out: micro.in, micro.final: macro.back}}
settings: {{k: 7}}
programs:
  macro:
    description: of two ranks
    executable: {sys.executable}
    args: {tmp_path}/macro.py
    execution_model: openmpi
  micro: {{description: of one, executable: {sys.executable}, args: {tmp_path}/micro.py}}
resources: {{parallel.macro: {{mpi_processes: 2}}}}
""")
    run_dir = tmp_path / "run"
    end = outcome(TITIN.start(path, run_dir), run_dir)
    assert end.code == 0, end.output
    files = sorted((run_dir / "instances/macro/workdir").glob("rank_*.jsonl"))
    found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert found == [[rank, 7, float(step), [root, step]] for rank in range(2) for step in range(3)]
