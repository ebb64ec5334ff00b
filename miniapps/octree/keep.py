#!/usr/bin/env python3
"""Receives the statistics from all ranks of LB or POST_DATA by a field; writes statistics.npz and report.json."""

import json

import numpy as np
import titin

RESULTS = 10

with titin.Instance(f_init=["report", "statistics"]) as instance:
    while instance.reuse():
        # F_INIT
        report = instance.receive("report").data
        cells, rows = np.array(report.pop("cells")), np.array(report.pop("series"))
        statistics = np.empty((RESULTS, len(cells)))
        owned = titin.Indices(cells)
        instance.field("statistics", (report["edge"],) * 3, [float] * RESULTS, owned=owned).receive(*statistics)

        # The series come in the order of the ranks that have the probes.
        report = {name: np.array(value).tolist() for name, value in report.items()}
        rows = rows.reshape(-1, report["samples"], 4)[np.argsort(report["probes"])]
        np.savez("statistics.npz", cells=cells, statistics=statistics, probes=rows)
        with open("report.json", "w") as file:
            json.dump(report, file)
