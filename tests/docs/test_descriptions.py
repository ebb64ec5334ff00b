"""titin accepts every whole description in the documents."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").glob("**/*.md"))]


def blocks():
    """The blocks of YAML that are descriptions with a model. Blocks with a title are tested elsewhere."""
    for page in PAGES:
        found = re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        whole = [text for text in found if "ymmsl_version:" in text and "models:" in text]
        for number, text in enumerate(whole):
            yield pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")


@pytest.mark.parametrize("text", list(blocks()))
def test_it_is_accepted(text, tmp_path):
    (tmp_path / "model.ymmsl").write_text(text)
    done = subprocess.run(["titin", "check", "model.ymmsl"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
