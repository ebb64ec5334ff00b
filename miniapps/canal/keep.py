#!/usr/bin/env python3
"""Receives the flow of a section from all ranks, and writes flow.npy, and the section's report to report.json."""

import json

import numpy as np
import titin

with titin.Instance(f_init=["report", "flow"]) as instance:
    while instance.reuse():
        # F_INIT
        report = instance.receive("report").data
        flow = np.empty((4, *report["extents"]))  # density and three velocities; across, upwards, along
        instance.field("flow", flow.shape[1:], [float] * 4).receive(*flow)

        np.save("flow.npy", flow)
        with open("report.json", "w") as file:
            json.dump(report, file, default=list)
