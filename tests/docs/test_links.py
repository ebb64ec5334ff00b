"""Links between documents lead to existing files and headings."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def pages():
    """The documents in the tree, as git lists them; without git, the files in docs."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True
    )
    names = listed.stdout.split() or [str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")]
    return [name for name in names if (ROOT / name).exists()]


def anchors(page):
    """The names of a page's headings in links."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.strip().lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("name", pages())
def test_links_lead_somewhere(name):
    page = ROOT / name
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        there = (page.parent / target).resolve() if target else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            lost.append(link)
    assert not lost, f"{name} links to what is not there: {', '.join(lost)}"


@pytest.mark.parametrize("language", ["c", "cpp", "fortran", "python"])
def test_each_language_says_what_an_instance_knows_and_says(language):
    page = (ROOT / "docs/api" / f"{language}.md").read_text()
    for word in ("overlay", "workdir", "scale", "region"):
        assert re.search(rf"(\b|_){word}(\b|_|\()", page), f"{language}: {word}"
    assert re.search(r"\b(titin_)?log\(", page), language


def test_the_index_has_all_pages():
    index = (ROOT / "docs/index.md").read_text()
    linked = {(ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)#\s]+)", index)}
    pages_of_users = {page for page in ROOT.glob("docs/**/*.md") if page.name != "index.md"}
    assert not pages_of_users - linked, "each page has a line in docs/index.md, which the menu of the site is made from"
