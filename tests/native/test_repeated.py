"""Messages that are mostly like the last on their slot go the short way; none is taken for another."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import EXCHANGE, Build, run

#: Parts of descriptions by which messages go other ways.
WAYS = {
    "shm": "",
    "tcp": "titin: {medium: {left.in: tcp, right.in: tcp}}\n",
    "file": "titin: {medium: {left.in: file, right.in: file}}\n",
    "uncounted": "settings: {muscle_profile_level: none}\n",
    "one at a time": "titin: {buffer: {default: {messages: 1}}}\n",
}


@pytest.mark.parametrize("way", WAYS)
def test_messages_like_the_last_and_others_alternate(build: Build, tmp_path: Path, way: str) -> None:
    program = build("repeated", "c")
    run(tmp_path, EXCHANGE.format(left=program, right=program, env="") + WAYS[way])


STAR = """\
ymmsl_version: v0.2
models:
  star:
    components:
      hub: {{ports: {{o_i: out, s: in}}, implementation: hub}}
      spoke: {{ports: {{o_i: out, s: in}}, implementation: spoke, multiplicity: 3}}
    conduits:
      hub.out: spoke.in
      spoke.out: hub.in
programs:
  hub: {{executable: {program}, args: [hub]}}
  spoke: {{executable: {program}, args: [spoke]}}
"""


@pytest.mark.parametrize(
    "settings", ["", "settings: {muscle_profile_level: none}\n", "titin: {medium: {hub.in: tcp}}\n"]
)
def test_messages_on_slots_and_from_any_slot_keep_their_order(build: Build, tmp_path: Path, settings: str) -> None:
    run(tmp_path, STAR.format(program=build("slots", "c")) + settings)


TURNS = """\
ymmsl_version: v0.2
models:
  turns:
    components:
      many: {{ports: {{o_i: out}}, implementation: many}}
      one: {{ports: {{o_i: out}}, implementation: one}}
      receiver: {{ports: {{s: many one}}, implementation: receiver}}
    conduits:
      many.out: receiver.many
      one.out: receiver.one
programs:
  many: {{executable: {program}, args: [many]}}
  one: {{executable: {program}, args: [one]}}
  receiver: {{executable: {program}, args: [receiver]}}
titin: {{{titin}}}
"""


@pytest.mark.parametrize("titin", ["", "medium: {receiver.many: tcp}"])
def test_no_sender_keeps_the_message_of_another_from_a_slow_receiver(build: Build, tmp_path: Path, titin: str) -> None:
    run(tmp_path, TURNS.format(program=build("turns", "c"), titin=titin))
