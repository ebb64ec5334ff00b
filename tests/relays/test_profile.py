"""The shares of waiting of each site, in the profile of a run over two sites."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from ..conftest import TITIN
from .conftest import Sites

CALLS = 20
PAUSES = {"near": 0.02, "far": 0.05}

#: One program calls two others in turn. Each answers after a pause.
CALLING = f"""\
import sys, time
import titin

name, pauses = sys.argv[1], {PAUSES}
if name == "calls":
    with titin.Instance(o_i=["to_near", "to_far"], s=["from_near", "from_far"]) as instance:
        while instance.reuse():
            for call in range({CALLS}):
                for other in pauses:
                    instance.send("to_" + other, call, timestamp=float(call))
                    assert instance.receive("from_" + other).data == call
else:
    with titin.Instance(f_init=["in"], o_f=["out"]) as instance:
        while instance.reuse():
            message = instance.receive("in")
            time.sleep(pauses[name])
            instance.send("out", message.data, timestamp=message.timestamp)
"""

MODEL = """\
ymmsl_version: v0.2
models:
  calling:
    components:
      calls: {{description: calls, ports: {{o_i: to_near to_far, s: from_near from_far}}, implementation: calls}}
      near: {{description: answers, ports: {{f_init: in, o_f: out}}, implementation: near}}
      far: {{description: answers, ports: {{f_init: in, o_f: out}}, implementation: far}}
    conduits: {{calls.to_near: near.in, calls.to_far: far.in, near.out: calls.from_near, far.out: calls.from_far}}
programs:
  calls: {{executable: {python}, args: [{folder}/calling.py, calls]}}
  near: {{executable: {python}, args: [{folder}/calling.py, near]}}
  far: {{executable: {python}, args: [{folder}/calling.py, far]}}
titin:
  sites: {{south: {{relay: "127.0.0.1:{port}"}}}}
  hosts:
    localhost: {{components: [calls, near]}}
    there: {{site: south, start: [env], components: [far]}}
"""


def profile(sites: Sites, *options: str) -> str:
    """What the command prints."""
    command = [TITIN, "profile", "run", *options]
    return subprocess.run(command, cwd=sites.folder, capture_output=True, text=True, check=True).stdout


def test_each_site_has_its_share_of_waiting(sites: Sites) -> None:
    (sites.folder / "calling.py").write_text(CALLING)
    text = MODEL.format(python=sys.executable, folder=sites.folder, port=sites.south.local)
    (sites.folder / "model.ymmsl").write_text(text)
    status, out = sites.run()
    assert status == 0, out

    found = json.loads(profile(sites, "--json"))
    homes = {"calls": "north", "near": "north", "far": "south"}
    assert {instance["name"]: instance["site"] for instance in found["instances"]} == homes
    totals: dict[str, dict[str, Any]] = {site.pop("site"): site for site in found["sites"]}
    assert sorted(totals) == ["north", "south"]
    for name, site in totals.items():
        instances = [instance for instance in found["instances"] if homes[instance["name"]] == name]
        assert site["instances"] == len(instances)
        for key in ("total", "compute", "waiting", "sending"):
            assert site[key] == pytest.approx(sum(instance[key] for instance in instances))
        waits = 0.0
        for conduit in found["conduits"]:
            ends = [homes[conduit[end].split(".")[0]] for end in ("from", "to")]
            if ends[0] != ends[1]:
                waits += conduit["sender_waited"] if ends[0] == name else conduit["receiver_waited"]
        assert site["for_other_sites"] == pytest.approx(waits)
    # North waits for the pauses of south, and south for those of north.
    assert totals["north"]["for_other_sites"] > 0.9 * CALLS * PAUSES["far"]
    assert totals["south"]["for_other_sites"] > 0.9 * CALLS * PAUSES["near"]
    assert totals["north"]["waiting"] > totals["north"]["for_other_sites"] + 0.9 * CALLS * PAUSES["near"]

    lines = [line.split() for line in profile(sites).splitlines()]
    assert ["north", "2"] in [words[:2] for words in lines]
    assert ["south", "1"] in [words[:2] for words in lines]
