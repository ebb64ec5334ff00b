"""Pages with every public name of a language, made from its headers, modules or stubs.

Each language has a module here with a function `page()`. The languages share the data classes and the rendering below.
"""

import re
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


@dataclass
class Page:
    """All names of a language. Links from `text` lead to the entries."""

    title: str
    fence: str
    introduction: str
    sections: list[Section]

    def entries(self) -> Iterator[Entry]:
        """All entries, with the members of types."""
        below = [entry for section in self.sections for entry in section.entries]
        while below:
            entry = below.pop(0)
            yield entry
            below[:0] = entry.members

    def names(self) -> set[str]:
        return {name for entry in self.entries() for name in entry.names}

    def undescribed(self) -> list[str]:
        """Names of entries without a text."""
        return [name for entry in self.entries() if not entry.text.strip() for name in entry.names]

    def markdown(self) -> str:
        links = {name: anchor(name) for name in sorted(self.names())}
        lines = [f"# {self.title}", "", self.introduction, ""]
        for section in self.sections:
            lines += [f"## {section.title}", "", linked(section.text, links), ""]
            for entry in section.entries:
                lines += self._entry(entry, 3, links)
        return "\n".join(lines) + "\n"

    def _entry(self, entry: Entry, level: int, links: dict[str, str]) -> list[str]:
        short = [re.split(r"::|%|\.", name)[-1] if level > 3 else name for name in entry.names]
        heading = entry.title or ", ".join(f"`{name}`" for name in dict.fromkeys(short))
        first, *others = dict.fromkeys(anchor(name) for name in entry.names)
        lines = [f"{'#' * level} {heading} {{ #{first} }}", ""]
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
    return "".join(part if part.startswith("`") else re.sub(r"([*<])", r"\\\1", part) for part in parts)


def paragraphs(lines: list[str]) -> str:
    """The lines of a comment as Markdown. Indented lines after an empty line are code. Indented lines right below a line
    that begins with a word and a full stop ("Errors. ...") go on with an item of a list."""
    out: list[str] = []
    code = False
    for i, line in enumerate(lines):
        after_empty = i == 0 or not lines[i - 1].strip()
        if not line.strip():
            out.append("")
        elif line.startswith("    ") and (after_empty or code):
            code = True
            out.append(line)
        else:
            code = False
            item = re.match(r"([A-Z][a-z]+(?: [a-z]+)?)\. ", line)
            if item and i + 1 < len(lines) and lines[i + 1].startswith("    "):
                out.append(f"- **{item[1]}.** {escaped(line[item.end() :])}")
            elif line.startswith("    "):
                out.append(f"  {escaped(line.strip())}")
            else:
                if out and out[-1].startswith("  "):
                    out.append("")
                out.append(escaped(line.strip()))
    return "\n".join(out).strip("\n")
