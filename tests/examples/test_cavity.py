"""The lid-driven cavity: divided or whole the same to the bit, and right by Ghia, Ghia and Shin (1982)."""

import re


def test_the_demo_agrees_with_itself_and_with_the_reference(examples):
    said = examples.call("./run.sh", folder="cavity")
    assert said.count("the same to the bit") == 2, said
    errors = [float(error) for error in re.findall(r"within ([\d.]+) of Ghia", said)]
    assert len(errors) == 2 and max(errors) < 0.02, said
    assert (examples.root / "cavity/build/cavity.svg").read_text().startswith("<?xml")
