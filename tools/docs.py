#!/usr/bin/env python3
"""Builds the documentation as a site, in build/site.

The pages are those of docs/, and what they link to: other documents, the files of examples as pages of code, pictures. Their
links are those that hold on a code-hosting site too; here they are rewritten for the places of the pages on the site. A link to
a header, a module or a stub leads to the page with every name of its language. The menu is that of docs/index.md: its
headings, and the links in the first columns of its tables.
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

PAGES = ROOT / "build/site-pages"
SITE = ROOT / "build/site"
#: Folders with the names of a language, and the page that has them all.
REFERENCES: dict[str, tuple[str, Callable[[], Page]]] = {
    "crates/capi/include/": ("api/names/c.md", c.page),
    "bindings/cpp/include/": ("api/names/cpp.md", cpp.page),
    "bindings/fortran/": ("api/names/fortran.md", fortran.page),
    "bindings/python/titin/": ("api/names/python.md", python.page),
}
LANGUAGES = {
    ".py": "python", ".pyi": "python", ".c": "c", ".h": "c", ".cpp": "cpp", ".hpp": "cpp", ".f90": "fortran", ".ymmsl": "yaml",
    ".sh": "bash", ".cff": "yaml",
}  # fmt: skip
PICTURES = {".svg", ".png"}
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s]+)(\))")
FENCE = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def destination(path: str) -> str:
    """Where a file of the tree is on the site."""
    for folder, (page, _) in REFERENCES.items():
        if path.startswith(folder) and not path.endswith(".md"):
            return page
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.endswith(".md") or Path(path).suffix in PICTURES:
        # README.md of the tree beside docs/index.md, and README.md of a folder as the page of the folder.
        return "titin.md" if path == "README.md" else re.sub(r"(^|/)README\.md$", r"\1index.md", path)
    return path + ".md"


def relative(target: str, page: str) -> str:
    return os.path.relpath(target, PurePosixPath(page).parent)


class Site:
    """The pages that are staged, and those that are still to be."""

    def __init__(self) -> None:
        self.waiting = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))
        self.staged: set[str] = set()

    def stage(self) -> None:
        shutil.rmtree(PAGES, ignore_errors=True)
        while self.waiting:
            path = self.waiting.pop()
            if path not in self.staged:
                self.staged.add(path)
                self.add(path)
        for page, names in REFERENCES.values():
            write(page, names().markdown())
        shutil.copytree(ROOT / "tools/site", PAGES / "assets")

    def add(self, path: str) -> None:
        there = ROOT / path
        if there.is_dir():
            files = sorted(one.name for one in there.iterdir() if one.is_file() and not one.name.startswith("."))
            write(f"{path}/index.md", f"# {path}\n\n" + "".join(f"- [{one}]({one}.md)\n" for one in files))
            self.waiting += [f"{path}/{one}" for one in files]
        elif there.suffix in PICTURES:
            target = PAGES / destination(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(there, target)
        elif there.suffix == ".md":
            write(destination(path), self.page(path, there.read_text()))
        else:
            language = LANGUAGES.get(there.suffix, "text")
            write(destination(path), f"# {there.name}\n\n````{language} title=\"{path}\"\n{there.read_text()}````\n")

    def page(self, path: str, text: str) -> str:
        """A page with the links of the site."""

        def link(match: re.Match[str]) -> str:
            if re.match(r"[a-z]+:|#", match[2]):
                return match[0]
            target, _, anchor = match[2].partition("#")
            there = os.path.normpath(PurePosixPath(path).parent / target)
            if (ROOT / there).is_dir():
                readme = f"{there}/README.md"
                there = readme if (ROOT / readme).exists() else there
            place = destination(there) if not (ROOT / there).is_dir() else f"{there}/index.md"
            if place not in {page for page, _ in REFERENCES.values()}:
                self.waiting.append(there)
            return match[1] + relative(place, destination(path)) + (f"#{anchor}" if anchor else "") + match[3]

        parts = FENCE.split(text)
        # A link whose text is code: `[` and `](` are in different parts, so code is put back afterwards.
        code = [part for part in parts[1::2]]
        marked = "".join(part if i % 2 == 0 else f"\0{i // 2}\0" for i, part in enumerate(parts))
        whole = re.sub(r"\0(\d+)\0", lambda match: code[int(match[1])], LINK.sub(link, marked))
        return indented(whole)


def indented(text: str) -> str:
    """What belongs to an item of a list is indented by 4, as this Markdown wants it, in place of the width of the mark."""
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


def write(place: str, text: str) -> None:
    (PAGES / place).parent.mkdir(parents=True, exist_ok=True)
    (PAGES / place).write_text(text)


def menu() -> Iterator[dict[str, object]]:
    """The menu, from docs/index.md."""
    text = (ROOT / "docs/index.md").read_text()
    for title, part in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        pages: list[dict[str, str]] = []
        for cell in re.findall(r"^\| ([^|]*) \|", part, re.MULTILINE):
            for name, target in re.findall(r"\[([^\]]+)\]\(([^)#\s]+)\)", cell):
                there = os.path.normpath(PurePosixPath("docs") / target)
                there = f"{there}/README.md" if (ROOT / there).is_dir() else there
                pages.append({name: destination(there)})
        if pages:
            yield {title: pages}


def main() -> int:
    Site().stage()
    nav: list[dict[str, object]] = [{"Start": "index.md"}, *menu()]
    config = {"INHERIT": "../mkdocs.yml", "docs_dir": "site-pages", "site_dir": "site", "nav": nav}
    (ROOT / "build/mkdocs.yml").write_text(yaml.safe_dump(config, sort_keys=False))
    # Material warns of a coming MkDocs, which is not the one that requirements-docs.txt names.
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--clean", "--config-file", "build/mkdocs.yml"]
    done = subprocess.run(command, cwd=ROOT, env=environment)
    if done.returncode == 0:
        print(f"{SITE}/index.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
