"""Refuses an environment that has MUSCLE3 too: both distributions have files of the same names."""

from __future__ import annotations

import os
import sys


def refuse_muscle3() -> None:
    """Raises ImportError if a folder on the module search path has the distribution ``muscle3``."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or os.curdir)
        except OSError:
            continue
        for name in names:
            if name.startswith("muscle3-") and name.endswith((".dist-info", ".egg-info")):
                version = name.split("-")[1].rpartition(".")[0]
                raise ImportError(
                    f"titin-muscle3 and muscle3 ({version}) are in one environment, and both have a libmuscle. "
                    f"MUSCLE3 is in {os.path.abspath(folder)}. Keep one: `pip uninstall muscle3 titin-muscle3`, then "
                    "`pip install titin-muscle3` to run on titin, or `pip install muscle3` to run on MUSCLE3"
                )
