"""Takes the numbers, and writes down what they come to."""

from pathlib import Path

import titin

with titin.Instance(f_init=["numbers"]) as instance:
    while instance.reuse():
        numbers = instance.receive("numbers").data
        Path(instance.setting("result", str)).write_text(f"{len(numbers)} numbers, their sum {numbers.sum()}\n")
