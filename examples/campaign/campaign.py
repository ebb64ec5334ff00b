#!/usr/bin/env python3
"""A campaign of EasyVVUQ whose samples titin runs; with `--local` EasyVVUQ runs them itself, to compare."""

import shutil
import subprocess
import sys
from pathlib import Path

import chaospy
import pandas as pd
from easyvvuq import Campaign
from easyvvuq.actions import Actions, CreateRunDirectory, Decode, Encode, ExecuteLocal
from easyvvuq.decoders import JSONDecoder
from easyvvuq.encoders import GenericEncoder
from easyvvuq.sampling import PCESampler

HERE = Path(__file__).resolve().parent
BUILD = HERE / "build"
VARIED = {
    "length": chaospy.Uniform(0.9, 1.1),
    "friction": chaospy.Uniform(0.05, 0.2),
    "start": chaospy.Normal(0.5, 0.05),
}


def by_titin(campaign: Campaign) -> None:
    """Writes the samples as a table, runs titin, and takes its results as those of the samples."""
    samples = campaign.list_runs()
    pd.DataFrame([sample["params"] for _, sample in samples]).to_csv(BUILD / "table.csv", index=False)
    shutil.rmtree(BUILD / "run", ignore_errors=True)
    subprocess.run(["titin", "run", "campaign.ymmsl", "--run-dir", "build/run"], cwd=HERE, check=True)

    # Without "round_trip", pandas may read a number with another last bit.
    results = pd.read_csv(BUILD / "results.csv", float_precision="round_trip")
    failed = results[results["status"] != "done"]
    if len(failed):
        raise SystemExit(f"{len(failed)} samples have failed, the first one: {failed['reason'].iloc[0]}")
    angles = results.filter(like="value_").to_numpy().tolist()
    numbers = [samples[row][0] for row in results["row"]]
    campaign.campaign_db.store_results("pendulum", zip(numbers, ({"angle": angle} for angle in angles), strict=True))


def by_easyvvuq(campaign: Campaign) -> None:
    """Runs a process for each sample, in a folder of its own."""
    template = BUILD / "input.template"
    template.write_text("{" + ", ".join(f'"{name}": ${name}' for name in VARIED) + "}")
    actions = Actions(
        CreateRunDirectory(str(BUILD)),
        Encode(GenericEncoder(str(template), target_filename="input.json")),
        ExecuteLocal(f"{sys.executable} {HERE}/alone.py"),
        Decode(JSONDecoder("output.json", ["angle"])),
    )
    campaign.apply_for_each_sample(actions).start().collate()


BUILD.mkdir(exist_ok=True)
campaign = Campaign(
    "pendulum", {name: {"type": "float", "default": 0.0} for name in VARIED}, Actions(), work_dir=str(BUILD)
)
campaign.set_sampler(PCESampler(vary=VARIED, polynomial_order=3))
campaign.draw_samples()
local = "--local" in sys.argv
by_easyvvuq(campaign) if local else by_titin(campaign)

campaign.get_collation_result().to_csv(BUILD / ("local.csv" if local else "titin.csv"), index=False)
analysis = campaign.analyse(qoi_cols=["angle"])
print("second  mean angle  spread", *(f"{name:>9}" for name in VARIED))
mean, spread, first = (
    analysis.describe("angle", "mean"),
    analysis.describe("angle", "std"),
    analysis.sobols_first("angle"),
)
for second in range(len(mean)):
    shares = (f"{first[name][second]:9.4f}" for name in VARIED)
    print(f"{second + 1:6}  {mean[second]:10.5f}  {spread[second]:6.4f}", *shares)
