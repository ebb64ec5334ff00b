"""Unlike releases at two sites: south has a relay and a program whose versions a test chooses by the environment."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from ..conftest import PROFILE, cargo_build
from .conftest import Relay, Sites, wait_until

#: Asks, and checks the answers.
ASKS = """\
import numpy as np
import titin

rng = np.random.default_rng(1)
with titin.Instance(o_i=["out"], s=["in"]) as instance:
    while instance.reuse():
        for step in range(20):
            mine = rng.integers(0, 2**62, size=1 + 10_007 * step)
            instance.send("out", mine, timestamp=float(step))
            assert (np.asarray(instance.receive("in").data) == mine).all()
print("all answers are right")
"""

MODEL = """\
ymmsl_version: v0.2
models:
  releases:
    components:
      a: {{description: asks, ports: {{o_i: out, s: in}}, implementation: a}}
      b: {{description: answers, ports: {{f_init: in, o_f: out}}, implementation: b}}
    conduits: {{a.out: b.in, b.out: a.in}}
programs:
  a: {{executable: {python}, args: [{folder}/asks.py]}}
  b: {{executable: {echo}, env: {env}}}
titin:
  sites: {{south: {{relay: "127.0.0.1:{port}"}}}}
  hosts:
    localhost: {{components: [a]}}
    far: {{site: south, start: [env], components: [b]}}
"""


@pytest.fixture(scope="module")
def programs() -> dict[str, Path]:
    """The programs of the other release, by name: a relay, and a program that answers."""
    if PROFILE == "release":
        pytest.skip("a release build speaks its own versions alone")
    return {name: Path(path) for name, path in cargo_build("--bin", "titin-relayd", "--example", "echo").items()}


def answer(sites: Sites, echo: Path, **versions: str) -> tuple[int, str]:
    """Runs the model with a program that speaks the given versions."""
    (sites.folder / "asks.py").write_text(ASKS)
    env = {f"TITIN_{kind.upper()}_VERSIONS": text for kind, text in versions.items()}
    text = MODEL.format(python=sys.executable, folder=sites.folder, echo=echo, env=env, port=sites.south.local)
    (sites.folder / "model.ymmsl").write_text(text)
    status, out = sites.run()
    # Quoted output of programs has a bar in front of each line.
    return status, " ".join(out.replace("|", " ").split())


def use_other_release(relay: Relay, program: Path, versions: str) -> None:
    """Replaces a relay that runs by one of the other release."""
    relay.kill()
    relay.program = program
    relay.starter = ("env", f"TITIN_RELAY_VERSIONS={versions}")
    relay.start()


@pytest.mark.parametrize("highest", [2, 9])
def test_a_later_release_at_the_other_site_takes_part(sites: Sites, programs: dict[str, Path], highest: int) -> None:
    versions = f"1 {highest}"
    use_other_release(sites.south, programs["titin-relayd"], versions)
    wait_until(lambda: sites.north.peer("south")["connected"], "the relays do not connect")
    status, out = answer(sites, programs["echo"], control=versions, data=versions, relay=versions)
    assert status == 0, out
    assert (sites.folder / "run/instances/a/stdout.txt").read_text() == "all answers are right\n"


@pytest.mark.parametrize("kind", ["control", "data", "relay"])
def test_a_program_without_a_version_in_common_is_refused_with_both_ranges(
    sites: Sites, programs: dict[str, Path], kind: str
) -> None:
    status, out = answer(sites, programs["echo"], **{kind: "2 3"})
    assert status == 1, out
    pattern = (
        rf"the other end speaks {kind} versions \(1, 1\), this one \(2, 3\): use releases of titin that share a version"
    )
    assert re.search(pattern, out), out
    assert not sites.south.status["runs"]


def test_a_relay_without_a_version_in_common_is_refused_with_both_ranges(
    sites: Sites, programs: dict[str, Path]
) -> None:
    use_other_release(sites.south, programs["titin-relayd"], "2 3")
    why = "the relay of the site south speaks versions 2 to 3, that of north 1 to 1"
    for relay in (sites.north, sites.south):
        wait_until(lambda relay=relay: why in relay.log, f"{relay.site} does not say why the other relay is refused")
    assert not sites.north.peer("south")["connected"]
