#!/usr/bin/env python3
"""Compare runs of the pair with the same equations stepped in one program, and draw them.

python plot.py RUN_DIR... -o reaction-diffusion.svg
"""

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

# The settings of model.ymmsl.
CELLS, DX, D, K = 200, 0.5, 1.0, 1.0
MACRO_T_MAX, MACRO_DT, MICRO_T_MAX, MICRO_DT = 40.0, 0.1, 0.1, 0.01


def direct():
    """The state after each macro step, with growth and diffusion in one loop."""
    u = np.zeros(CELLS)
    u[: CELLS // 10] = 1.0
    a = D * MACRO_DT / (DX * DX)
    states = [u.copy()]
    for _ in range(round(MACRO_T_MAX / MACRO_DT)):
        for _ in range(round(MICRO_T_MAX / MICRO_DT)):
            u += MICRO_DT * K * u * (1.0 - u)
        u[1:-1] = u[1:-1] + a * (u[:-2] - 2.0 * u[1:-1] + u[2:])
        u[0], u[-1] = u[1], u[-2]
        states.append(u.copy())
    return np.array(states)


def coupled(run):
    return np.load(Path(run) / "instances/result/workdir/final_state.npy")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN_DIR")
    parser.add_argument("-o", "--out", default="reaction-diffusion.svg")
    args = parser.parse_args()

    states = direct()
    good = True
    for run in args.runs:
        u = coupled(run)
        same = u.tobytes() == states[-1].tobytes()
        good &= same
        print(f"{run}: {'the same to the bit' if same else f'DIFFERENT, by up to {np.abs(u - states[-1]).max():.3g}'}")

    x = np.arange(CELLS) * DX
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "titin"})
    figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
    for hours in (0, 10, 20, 30):
        axes.plot(x, states[round(hours / MACRO_DT)], color="0.7", linewidth=1)
        axes.annotate(f"{hours} h", (np.interp(-0.5, -states[round(hours / MACRO_DT)], x) + 1, 0.5), color="0.5")
    axes.plot(x, states[-1], color="#1f5f8b", linewidth=3, alpha=0.4, label="one program, 40 h")
    axes.plot(x, u, color="#d1495b", linewidth=1.2, label="coupled, 40 h")
    axes.set(xlabel="mm", ylabel="population", xlim=(0, x[-1]))
    axes.set_title("A population grows and spreads", loc="left")
    axes.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    figure.savefig(args.out, metadata={"Date": None})
    print(f"picture: {args.out}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
