"""Cut a SWMM network in two at a node.

In the part above the cut the node becomes an outfall, and the stage at the outfall comes from the part below. In the
part below the cut the node stays as it is, and the flow into it comes from the part above. Every other row goes to one
of the parts, unchanged.
"""

import sys
from pathlib import Path

# The column of each section with the node or link that decides on the part of a row.
NODES = ("JUNCTIONS", "STORAGE", "OUTFALLS")
LINKS = ("CONDUITS", "XSECTIONS", "LOSSES")
LAND = ("SUBCATCHMENTS", "SUBAREAS", "INFILTRATION")


def sections(text):
    """The sections of the file, in order, each with its lines."""
    parts, rows = {}, None
    for line in text.splitlines():
        if line.startswith("["):
            rows = parts.setdefault(line.strip("[] \t"), [])
        elif rows is not None:
            rows.append(line)
    return parts


def records(lines):
    """The rows except blank lines and comments, as lists of words."""
    return [line.split() for line in lines if line.strip() and not line.startswith(";")]


def cut(text, node):
    """The texts of two SWMM input files, above and below `node`, from the text of the whole."""
    network = sections(text)
    nodes = {row[0]: row for section in ("JUNCTIONS", "STORAGE") for row in records(network[section])}
    if node not in nodes:
        raise ValueError(f"cannot cut at {node!r}: the nodes are {', '.join(nodes)}")

    links = {row[0]: (row[1], row[2]) for row in records(network["CONDUITS"])}
    above = {node}
    while grown := {start for start, end in links.values() if end in above} - above:
        above |= grown
    above.remove(node)
    outlet = {row[0]: row[2] for row in records(network["SUBCATCHMENTS"])}

    def belongs_above(section, name):
        if section in NODES:
            return name in above
        if section in LINKS:
            return links[name][0] in above
        if section in LAND:
            return outlet[name] in above
        return None  # options, rain and the like go to both parts

    def part(wanted, extra):
        text = []
        for section, lines in network.items():
            text.append(f"[{section}]")
            for line in lines:
                name = line.split()[0] if line.strip() and not line.startswith(";") else None
                if name is None or belongs_above(section, name) in (None, wanted):
                    text.append(line)
                if section == extra[0] and line is lines[0]:
                    text.append(extra[1])
        return "\n".join(text) + "\n"

    invert, _, depth = map(float, nodes[node][1:4])  # the outfall has the invert of the node
    return part(True, ("OUTFALLS", f"{node}  {invert}  FIXED  {invert + depth}  NO")), part(False, ("", ""))


if __name__ == "__main__":
    source, node, upper, lower = sys.argv[1:]
    for path, text in zip((upper, lower), cut(Path(source).read_text(), node)):
        Path(path).write_text(text)
