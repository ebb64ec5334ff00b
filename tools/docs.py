#!/usr/bin/env python3
"""Builds the documentation as a site: docs.py [FOLDER], in FOLDER/site, or build/site.

The pages are those of docs/, and what they link to: other documents, pictures, and files as pages of code. Their links
hold on a code-hosting site too; here they are rewritten for the places of the pages on the site. A link to a header, a
module or a stub leads to the page with every name of its language. The menu is that of docs/index.md: its headings, and
the links in the first columns of its tables.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import yaml
from reference import ROOT, Page, c, cpp, fortran, python

#: Folders with the names of a language, with the page that has them all and what makes it.
NAMES: dict[str, tuple[str, Callable[[], Page]]] = {
    "crates/capi/include/": ("api/names/c.md", c.page),
    "bindings/cpp/include/": ("api/names/cpp.md", cpp.page),
    "bindings/fortran/": ("api/names/fortran.md", fortran.page),
    "bindings/python/titin/": ("api/names/python.md", python.page),
}
LANGUAGES = {
    ".c": "c",
    ".cff": "yaml",
    ".cpp": "cpp",
    ".f90": "fortran",
    ".h": "c",
    ".hpp": "cpp",
    ".py": "python",
    ".sh": "bash",
    ".ymmsl": "yaml",
}
PICTURES = {".svg", ".png"}
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s]+)(\))")
FENCE = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def destination(path: str) -> str:
    """Where a file of the tree is on the site."""
    for folder, (page, _) in NAMES.items():
        if path.startswith(folder) and not path.endswith(".md"):
            return page
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.endswith(".md") or Path(path).suffix in PICTURES:
        # README.md of the tree beside docs/index.md, and README.md of a folder as the page of the folder.
        return "titin.md" if path == "README.md" else re.sub(r"(^|/)README\.md$", r"\1index.md", path)
    return path + ".md"


def title(page: Path) -> str:
    """The heading of a page, for links whose words are the name of its file."""
    return page.read_text().split("\n")[0].removeprefix("# ")


def page_of(path: str) -> str:
    """The file of a folder that is its page, if it has one."""
    readme = f"{path}/README.md"
    return readme if (ROOT / readme).exists() else path


class Site:
    """The pages that are staged, and those that are still to be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.waiting = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))
        self.staged: set[str] = set()
        #: The places of headers and modules on the pages with all names.
        self.sources: dict[str, str] = {}

    def stage(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        for place, names in NAMES.values():
            page = names()
            self.sources |= page.sources()
            self.write(place, page.markdown())
        while self.waiting:
            path = self.waiting.pop()
            if path not in self.staged:
                self.staged.add(path)
                self.add(path)
        shutil.copytree(ROOT / "tools/site", self.folder / "assets")

    def add(self, path: str) -> None:
        there = ROOT / path
        if there.is_dir():
            files = sorted(one.name for one in there.iterdir() if one.is_file() and not one.name.startswith("."))
            self.write(f"{path}/index.md", f"# {path}\n\n" + "".join(f"- [{one}]({one}.md)\n" for one in files))
            self.waiting += [f"{path}/{one}" for one in files]
        elif there.suffix in PICTURES:
            target = self.folder / destination(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(there, target)
        elif there.suffix == ".md":
            self.write(destination(path), self.page(path, there.read_text()))
        else:
            language = LANGUAGES.get(there.suffix, "text")
            self.write(destination(path), f'# {there.name}\n\n````{language} title="{path}"\n{there.read_text()}````\n')

    def write(self, place: str, text: str) -> None:
        there = self.folder / place
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(text)

    def page(self, path: str, text: str) -> str:
        """A page with the links of the site."""

        def link(match: re.Match[str]) -> str:
            words, link, end = match.groups()
            if re.match(r"[a-z]+:|#", link):
                return match[0]
            target, _, anchor = link.partition("#")
            there = page_of(os.path.normpath(PurePosixPath(path).parent / target))
            if not (ROOT / there).exists():
                sys.exit(f"{path} links to {link}, which is not there")
            place = f"{there}/index.md" if (ROOT / there).is_dir() else destination(there)
            if place not in (page for page, _ in NAMES.values()):
                self.waiting.append(there)
            anchor = anchor or self.sources.get(there, "")
            if re.fullmatch(r"\[[\w/]+\.md\]\(", words):
                words = f"[{title(ROOT / there)}]("
            relative = os.path.relpath(place, PurePosixPath(destination(path)).parent)
            return words + relative + (f"#{anchor}" if anchor else "") + end

        parts = FENCE.split(text)
        # A link whose text is code: `[` and `](` are in different parts, so code is put back afterwards.
        code = parts[1::2]
        marked = "".join(part if i % 2 == 0 else f"\0{i // 2}\0" for i, part in enumerate(parts))
        whole = re.sub(r"\0(\d+)\0", lambda match: code[int(match[1])], LINK.sub(link, marked))
        return indented(whole)


def indented(text: str) -> str:
    """What belongs to an item of a list is indented by 4, as MkDocs wants it, in place of the width of the mark."""
    lines, more, fenced = [], 0, False
    for line in text.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        mark = None if fenced else re.match(r"(?:-|\d+\.) +", line)
        if mark:
            more = 4 - len(mark[0])
        elif line and not line.startswith(" "):
            more = 0
        lines.append(" " * more + line if more and line.startswith(" ") and not mark else line)
    return "\n".join(lines)


def menu() -> Iterator[dict[str, object]]:
    """The menu, from docs/index.md."""
    text = (ROOT / "docs/index.md").read_text()
    for heading, part in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        yield {heading: [*entries(part, "docs")]}


def entries(text: str, folder: str) -> Iterator[dict[str, object]]:
    """The entries of a menu for the links in the first columns of tables. A page about folders has those of the folders
    below it."""
    for cell in re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE):
        for name, target in re.findall(r"(?<!!)\[([^\]!]+)\]\(([^)#\s]+)\)", cell):
            there = page_of(os.path.normpath(PurePosixPath(folder) / target))
            below: list[object] = []
            if folder == "docs" and there.endswith("/README.md"):
                below += entries((ROOT / there).read_text().split("\n## ")[0], os.path.dirname(there))
            yield {name: [destination(there), *below] if below else destination(there)}


def main() -> int:
    folder = Path(sys.argv[1] if sys.argv[1:] else ROOT / "build").resolve()
    Site(folder / "site-pages").stage()
    config = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": "site-pages",
        "site_dir": "site",
        "nav": [{"Start": "index.md"}, *menu()],
    }
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(config, sort_keys=False))
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", str(folder / "mkdocs.yml")]
    # The theme warns of another MkDocs than that of requirements-docs.txt.
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # Not by --quiet: what MkDocs does not print it does not count, and no warning would fail the build.
    print("".join(line for line in done.stdout.splitlines(keepends=True) if not line.startswith("INFO")), end="")
    if done.returncode == 0:
        print(f"{folder}/site/index.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
