"""The documentation as a site: it is built without a warning, its menu has all pages, and it needs no other machine."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from ..conftest import needs_packages

needs_packages("material", "griffe", "tree_sitter")
ROOT = Path(__file__).parents[2]
#: What a browser loads by itself, beside `img`, `script` and the like: links are for readers.
LOADED = {"stylesheet", "icon", "preconnect", "preload", "modulepreload"}


class Loads(HTMLParser):
    """What a page loads, its links, and the names of its places."""

    def __init__(self, page):
        super().__init__()
        self.loads, self.links, self.places = [], [], set()
        self.feed(page.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places.add(given.get("id"))
        self.loads += [given[key] for key in ("src", "srcset", "data", "poster") if given.get(key)]
        if tag == "a":
            self.links.append(given.get("href", ""))
        elif tag == "link" and LOADED & set(given.get("rel", "").split()):
            self.loads.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built in a folder of its own: `--strict` makes an error of each warning about links and places."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, ROOT / "tools/docs.py", folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site):
    return {page.relative_to(site): Loads(page) for page in site.glob("**/*.html")}


def test_nothing_comes_from_other_machines(site, pages):
    loads = {load for page in pages.values() for load in page.loads}
    for sheet in site.glob("**/*.css"):
        loads.update(re.findall(r"url\(['\"]?(?!data:)([^'\")]+)|@import ['\"]?([^'\";]+)", sheet.read_text()))
    foreign = [load for load in loads if re.match(r"[a-z]+:|//", str(load)) and not str(load).startswith("data:")]
    assert loads and not foreign
    # The theme would load what draws these from elsewhere.
    assert not any('class="mermaid"' in (site / page).read_text() for page in pages)


def test_all_links_lead_somewhere(site, pages):
    lost = []
    for name, page in pages.items():
        if name.name == "404.html":
            continue  # shown at any place, so its links begin at the root
        for link in [*page.links, *page.loads]:
            target, _, place = unquote(link).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            there = (site / name.parent / target.split("?")[0]).resolve() if target else site / name
            there = there / "index.html" if there.is_dir() else there
            known = pages.get(there.relative_to(site.resolve())) if there.suffix == ".html" and there.exists() else None
            if not there.exists() or (place and known and place not in known.places):
                lost.append(f"{name}: {link}")
    assert len(pages) > 100 and not lost


def test_the_menu_has_all_pages(site, pages):
    written = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in ROOT.glob("docs/**/*.md")}
    listed = {Path(link.partition("#")[0]) for link in pages[Path("index.html")].links}
    assert written - listed == {Path("index.html")} - listed, "docs/index.md has no line for them"


def test_the_search_has_every_page_and_works_without_a_server(site):
    index = (site / "search/search_index.js").read_text()
    for words in ("errors.html#deadlock", "api/names/c.html#titin_open", "howto/port-a-solver.html"):
        assert words in index
    assert 'src="assets/iframe-worker.js"' in (site / "index.html").read_text()
