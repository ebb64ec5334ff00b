"""Messages that are mostly like the last on their port go a shorter way; none is taken for another."""

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
