#!/usr/bin/env python3
"""A canal network run by EPA SWMM: the whole network, or the part above or below a cut.

Water crosses the cut both ways: flow goes down, and the stage below comes back up, for a high river stands back into
the canals above. SWMM keeps its state in global variables, so each part needs a process of its own.
"""

from pathlib import Path

import numpy as np
import titin
from cut import cut
from swmm.toolkit import solver
from swmm.toolkit.shared_enum import LinkResult, NodeResult, ObjectType

NETWORK = Path(__file__).with_name("canals.inp")


def write_part(part, node):
    """Puts the network, or one part, into the work directory."""
    text = NETWORK.read_text()
    parts = {"whole": text} | dict(zip(("above", "below"), cut(text, node)))
    Path("part.inp").write_text(parts[part])


with titin.Instance(o_i=["flow_out", "stage_out"], s=["flow_in", "stage_in"], o_f=["hydrograph"]) as instance:
    while instance.reuse():
        # F_INIT
        node, gauge = instance.setting("node", str), instance.setting("gauge", str)
        exchange, routing = instance.setting("exchange", "s"), instance.setting("routing", "s")
        t_max = instance.setting("t_max", "s")
        above, below = instance.port("flow_out").connected, instance.port("flow_in").connected
        write_part("above" if above else "below" if below else "whole", node)

        solver.swmm_open("part.inp", "part.rpt", "part.out")
        solver.swmm_start(0)
        cut_node = solver.project_get_index(ObjectType.NODE, node)
        gauge_link = solver.project_get_index(ObjectType.LINK, gauge)

        flow, hydrograph = 0.0, []
        for step in range(round(t_max / exchange)):
            t = step * exchange

            # O_I
            if above:
                instance.send("flow_out", flow, timestamp=t, next_timestamp=t + exchange)
            if below:
                stage = solver.node_get_result(cut_node, NodeResult.HEAD)
                instance.send("stage_out", stage, timestamp=t, next_timestamp=t + exchange)

            # S
            if below:
                solver.node_set_total_inflow(cut_node, instance.receive("flow_in").data)
            if above:
                solver.outfall_set_stage(cut_node, instance.receive("stage_in").data)
            flows = []
            for _ in range(round(exchange / routing)):
                solver.swmm_step()
                flows.append(solver.link_get_result(gauge_link, LinkResult.FLOW))
            flow = float(np.mean(flows))  # the flow in this exchange, so that no water is lost between two exchanges
            hydrograph.append((t + exchange, flow))

        # O_F
        instance.send("hydrograph", np.array(hydrograph), timestamp=t_max)
        solver.swmm_end()
        solver.swmm_close()
