"""Pages with every public name of a language, made from its headers, modules or stubs.

Each language has a module here with a function `page()`. The languages share the data classes and the rendering below.
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass
class Entry:
    """Names that share a description: a function, or several that one comment describes."""

    names: list[str]
    signatures: list[str]
    text: str = ""
    #: The heading, where the names are too many for one.
    title: str = ""
    members: list["Entry"] = field(default_factory=list)

    def all_names(self) -> Iterator[str]:
        yield from self.names
        for member in self.members:
            yield from member.all_names()


@dataclass
class Section:
    title: str
    text: str = ""
    entries: list[Entry] = field(default_factory=list)
    #: The file in the tree that the section begins with.
    source: str = ""


@dataclass
class Page:
    """All names of a language. Links from `text` lead to the entries."""

    title: str
    fence: str
    introduction: str
    sections: list[Section]
    _placed: set[str] = field(default_factory=set)

    def entries(self) -> Iterator[Entry]:
        """All entries, with the members of types."""
        below = [entry for section in self.sections for entry in section.entries]
        while below:
            entry = below.pop(0)
            yield entry
            below[:0] = entry.members

    def sources(self) -> dict[str, str]:
        """Files of the tree with the names of their places on the page."""
        return {section.source: anchor(section.source) for section in self.sections if section.source}

    def names(self) -> set[str]:
        return {name for entry in self.entries() for name in entry.names}

    def undescribed(self) -> list[str]:
        """Names of entries without a text."""
        return [name for entry in self.entries() if not entry.text.strip() for name in entry.names]

    def markdown(self) -> str:
        links = {name: anchor(name) for name in sorted(self.names())}
        self._placed = set()
        lines = [f"# {self.title}", "", self.introduction, ""]
        for section in self.sections:
            place = f" {{ #{anchor(section.source)} }}" if section.source else ""
            lines += [f"## {section.title}{place}", "", linked(section.text, links), ""]
            for entry in section.entries:
                lines += self._entry(entry, 3, links)
        # Code of comments, which is indented there.
        code = re.compile(r"(?<=\n\n)((?: {4}.*\n|\n(?= {4}))+)")
        return code.sub(lambda m: f"```{self.fence}\n{textwrap.dedent(m[1]).rstrip()}\n```\n", "\n".join(lines) + "\n")

    def _entry(self, entry: Entry, level: int, links: dict[str, str]) -> list[str]:
        short = [re.split(r"::|%|\.", name)[-1] if level > 3 else name for name in entry.names]
        short = list(dict.fromkeys(short))
        short = short if len(short) <= 8 else [short[0], "…", short[-1]]
        heading = entry.title or ", ".join("…" if name == "…" else f"`{name}`" for name in short)
        # Overloads have a name in common: links lead to the first.
        first, *others = [anchor(name) for name in dict.fromkeys(entry.names) if anchor(name) not in self._placed] or [
            ""
        ]
        self._placed.update([first, *others])
        lines = [f"{'#' * level} {heading}" + (f" {{ #{first} }}" if first else ""), ""]
        if others:
            lines += ["".join(f'<a id="{other}"></a>' for other in others), ""]
        lines += [f"```{self.fence}", *entry.signatures, "```", "", linked(entry.text, links), ""]
        for member in entry.members:
            lines += self._entry(member, level + 1, links)
        return lines


def anchor(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-")


def linked(text: str, links: dict[str, str]) -> str:
    """Names in a text link to their entries."""
    parts = re.split(r"(^(?:    .*\n?|```[\s\S]*?^```$)+|`[^`]+`)", text, flags=re.MULTILINE)
    for i, part in enumerate(parts):
        if part.startswith(("    ", "```")):
            continue
        if part.startswith("`"):
            name = part.strip("`").removesuffix("()")
            target = links.get(name) or links.get(f"titin.{name}")
            parts[i] = f"[{part}](#{target})" if target else part
            continue
        parts[i] = re.sub(
            r"\b(titin[_:.][\w:.]*\w|TITIN_\w+)(\(\))?",
            lambda m: f"[`{m[1]}`](#{links[m[1]]})" if m[1] in links else f"`{m[0]}`",
            part,
        )
    return "".join(parts)


def escaped(line: str) -> str:
    """A line in which Markdown takes no sign for its own, but for `code`."""
    parts = re.split(r"(`[^`]+`)", line)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*\[\]])", r"\\\1", part).replace("<", "&lt;") for part in parts
    )


def paragraphs(lines: list[str]) -> str:
    """The lines of a comment as Markdown.

    Indented lines are code, but below a line that begins with a word and a full stop ("Errors. ..."): there they go on
    with the item of a list.
    """
    out: list[str] = []
    of = ""  # what the line before is a part of
    for line, below in zip(lines, [*lines[1:], ""]):
        item = re.match(r"([A-Z][a-z]+(?: [a-z]+)?)\. ", line) if below.startswith("    ") else None
        if not line.strip():
            out.append("")
            of = "code" if of == "code" else ""
        elif item:
            out.append(f"- **{item[1]}.** {escaped(line[item.end() :])}")
            of = "item"
        elif line.startswith("    ") and of == "item":
            out.append(f"  {escaped(line.strip())}")
        elif line.startswith("    "):
            out += [line] if of == "code" or not out else ["", line]
            of = "code"
        else:
            out += ["", escaped(line.strip())] if of in ("item", "code") else [escaped(line.strip())]
            of = "text"
    return "\n".join(out).strip("\n")
