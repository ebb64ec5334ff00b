"""Malformed data: every language gets an error that names port, sender and fault, and never nil in place of the
data."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from ..conftest import example
from .conftest import HERE, Build, run

MODEL = """\
ymmsl_version: v0.2
models:
  forgery:
    components:
      forger: {{ports: {{o_i: out}}, implementation: forger}}
      reader: {{ports: {{s: in}}, implementation: reader}}
    conduits:
      forger.out: {filter}reader.in
{filters}programs:
  forger: {{executable: {forger}, args: [{files}]}}
  reader: {{executable: {reader}, args: [{args}]}}
"""


def framed(tree: bytes) -> bytes:
    """A payload with this tree."""
    return struct.pack("<Q", len(tree)) + tree


def segment(kind: int, data: bytes) -> bytes:
    """An array (1) or bytes (2) of a tree."""
    return struct.pack(">BBb", 0xC7, len(data), kind) + data


#: A text, encoded as the structure of a message.
WELL = framed(b"\xa4well")

#: Malformed payloads, each with a description of the fault.
FORGED = {
    "no length of the tree": b"",
    "tree beyond the payload": struct.pack("<Q", 100) + b"\xc0",
    "bytes after the tree": framed(b"\xc0\xc0"),
    "text that is not UTF-8": framed(b"\xa2\xff\xfe"),
    "text beyond the tree": framed(b"\xdb\xff\xff\xff\xff"),
    # A list, and a map, of 2^32 - 1 entries.
    "the tree ends early": framed(b"\xdd\xff\xff\xff\xff"),
    "expected text": framed(b"\xdf\xff\xff\xff\xff\x01"),
    "nested more than 100 deep": framed(b"\x91" * 100_000 + b"\xc0"),
    'the name "a\\0b" has a character 0 in it': framed(b"\x81\xa3a\0b\x01"),
    "unknown extension type 7": framed(segment(7, bytes(16))),
    # 8 bytes at 6400; one float64 there, which lies in the payload but for its last byte.
    "an array or bytes beyond the payload, or not aligned in it": framed(segment(2, struct.pack("<QQ", 6400, 8))),
    "an array or bytes beyond the payload, or not aligned in it ": (
        framed(segment(1, struct.pack("<QBBBBI", 64, 12, 0, 0, 0, 0))).ljust(71, b"\0")
    ),
    "unknown dtype 99": framed(segment(1, struct.pack("<QBBBBI", 64, 99, 0, 0, 0, 0))),
    "rank 255": framed(segment(1, struct.pack("<QBBBBI", 64, 12, 0, 0, 255, 0))),
}


@pytest.fixture(scope="session")
def forger() -> str:
    """The program of crates/testkit that sends any bytes as a structure."""
    return example("forger")


def forge(folder: Path, *payloads: bytes) -> str:
    """Files of these payloads, as arguments of the forger."""
    for number, payload in enumerate(payloads):
        (folder / f"{number}.bin").write_bytes(payload)
    return ", ".join(str(folder / f"{number}.bin") for number in range(len(payloads)))


@pytest.mark.parametrize("language", ["c", "cpp", "f90", "py"])
def test_every_call_says_what_is_malformed(build: Build, tmp_path: Path, forger: str, language: str) -> None:
    reader = sys.executable if language == "py" else build("malformed", language)
    args = [HERE / "malformed.py"] if language == "py" else []
    # Each of the four calls meets each of the faults.
    faults = [fault for fault in FORGED for _ in range(4)]
    files = forge(tmp_path, *(FORGED[fault] for fault in faults), WELL)
    args = ", ".join(f'"{argument}"' for argument in [*args, len(faults)])
    run(tmp_path, MODEL.format(forger=forger, files=files, reader=reader, args=args, filter="", filters=""))
    said = (tmp_path / "run/instances/reader/stdout.txt").read_text().splitlines()
    assert len(said) == len(faults)
    for number, (line, fault) in enumerate(zip(said, faults, strict=True)):
        assert line.startswith(
            f"reader: port 'in': the message of forger.out at time {number}.0 cannot be read: malformed "
        ), line
        assert f": {fault.strip()}; " in line, line


@pytest.mark.parametrize("filter", ['python: "malformed:passes"', "library: {library}, symbol: late"])
def test_a_filter_is_not_called_with_what_is_malformed(build: Build, tmp_path: Path, forger: str, filter: str) -> None:
    own = filter.format(library=build("filter", "c", shared=True))
    model = MODEL.replace("{filter}", "own ").replace(
        "{filters}", f"titin: {{{{filters: {{{{own: {{{{{own}}}}}}}}}}}}}\n"
    )
    fault = "text that is not UTF-8"
    files = forge(tmp_path, FORGED[fault])
    args = f'{HERE / "malformed.py"}, "1", filtered'
    run(tmp_path, model.format(forger=forger, files=files, reader=sys.executable, args=args))
    said = (tmp_path / "run/instances/reader/stdout.txt").read_text()
    why = f"filter 'own' failed: the message cannot be read: malformed structure: {fault}\n"
    assert said == f"port 'in' (from forger.out): {why}"
