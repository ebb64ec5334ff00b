"""The filters of MUSCLE 2, and what titin has in their place."""

from __future__ import annotations

import re

#: Filters that change nothing for the programs: titin has no need of them.
NEEDLESS = {
    "pipe": "it does nothing",
    "serialize": "titin sends arrays as they are",
    "deserialize": "titin sends arrays as they are",
    "thread": "titin sends while the program computes",
    "chunk": "titin cuts large messages by itself",
    "dechunk": "titin cuts large messages by itself",
}
COMPRESSION = {"compress", "decompress"}
#: Names of the classes behind the short names of filters.
CLASSES = {
    "MultiplyFilterDouble": "multiply",
    "PipeFilter": "pipe",
    "CompressFilter": "compress",
    "DecompressFilter": "decompress",
    "SerializeFilter": "serialize",
    "DeserializeFilter": "deserialize",
    "ThreadFilter": "thread",
    "ChunkFilter": "chunk",
    "DechunkFilter": "dechunk",
}


def converted(filters: list[str]) -> tuple[list[str], list[str]]:
    """The filters of titin in their order, and a note for each filter that has no equal.

    An empty name stands between the filters of the sender and those of the receiver.
    """
    found: list[str] = []
    notes: list[str] = []
    border = filters.index("") if "" in filters else len(filters)
    for side, names in (("sender", filters[:border]), ("receiver", filters[border + 1 :])):
        for written in names:
            name, argument = parts(written)
            if name == "multiply" and is_number(argument):
                found.append(f"scale({float(argument)!r})")
            elif name == "compress":
                found.append("zstd")
            elif name not in NEEDLESS and name not in COMPRESSION:
                notes.append(
                    f"filter {written!r} at the {side} has no equal in titin: write one of your own (titin: filters)"
                )
    # What changes numbers stands before what makes bytes of them.
    compressed = [name for name in found if name == "zstd"][:1]
    return [name for name in found if name != "zstd"] + compressed, notes


def parts(written: str) -> tuple[str, str]:
    """The short name and the argument of a filter: ``multiply_2.5``, or ``package.MultiplyFilterDouble_2.5``."""
    match = re.fullmatch(r"(?:[A-Za-z]\w*\.)*([A-Za-z]+)(?:_(.*))?", written)
    if not match:
        return written, ""
    return CLASSES.get(match[1], match[1]), match[2] or ""


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
