"""A campaign of EasyVVUQ over titin: samples, results and statistics are those of its own executor, to the bit."""

import csv
import os
import re
from pathlib import Path

import pytest

from ..conftest import ROOT

FOLDER = "campaign"
EASYVVUQ = Path(os.environ.get("TITIN_EASYVVUQ", ROOT / ".venv/easyvvuq")) / "bin/python"
STUDIES = ROOT / "docs/studies.md"
NAMES = ["length", "friction", "start"]


@pytest.fixture(scope="module")
def easyvvuq():
    if not EASYVVUQ.exists():
        pytest.skip("EasyVVUQ is not in .venv/easyvvuq: requirements-dev.txt says how to install it")
    return EASYVVUQ


def test_the_same_to_the_bit_as_by_easyvvuq_alone(easyvvuq, examples):
    by_titin = examples.call(easyvvuq, "campaign.py", folder=FOLDER)
    alone = examples.call(easyvvuq, "campaign.py", "--local", folder=FOLDER)
    build = examples.folder / FOLDER / "build"
    assert (build / "titin.csv").read_bytes() == (build / "local.csv").read_bytes()
    statistics = by_titin[by_titin.index("second ") :]
    assert statistics == alone and len(statistics.splitlines()) == 11
    readme = (examples.folder / FOLDER / "README.md").read_text().splitlines()
    assert all("    " + line in readme for line in statistics.splitlines()[:2] + statistics.splitlines()[-1:])
    log = (build / "run/titin_manager.log").read_text()
    assert "runs campaign: 5 instances" in log


def test_the_page_has_the_function_of_the_example():
    listed = [
        text for text in re.findall(r"^```python\n(.*?)^```", STUDIES.read_text(), re.M | re.S) if "Campaign" in text
    ]
    assert len(listed) == 1 and listed[0] in (ROOT / "examples/campaign/campaign.py").read_text()


def test_a_sample_has_the_result_of_the_model_alone(examples):
    """What titin has of the campaign, with three samples; without EasyVVUQ."""
    build = examples.folder / FOLDER / "build"
    build.mkdir(exist_ok=True)
    samples = [(0.9 + 0.1 / 3, 0.1, 0.5), (1.1, 0.2 / 3, -0.4), (1.0, 0.05, 0.1 + 0.2)]
    (build / "few.csv").write_text("\n".join(",".join(map(str, line)) for line in [NAMES, *samples]) + "\n")
    changed = ["--set", "sampler.table=build/few.csv", "--set", "sampler.results=build/few-results.csv"]
    examples.call("titin", "run", "campaign.ymmsl", *changed, "--run-dir", build / "few", folder=FOLDER)
    with examples.module(FOLDER, "pendulum") as pendulum, (build / "few-results.csv").open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["row"]))
        assert [[float(row[name]) for name in NAMES] for row in rows] == [list(sample) for sample in samples]
        for row, sample in zip(rows, samples, strict=True):
            assert [float(row[f"value_{second}"]) for second in range(10)] == pendulum.angles(*sample)
