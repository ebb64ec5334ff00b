"""Ports with slots: several members of a model are joined to one model, which has an array over all of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import slots

from .conftest import PEER, bmi

CASES = {
    "Basin": ("basin__level", "basin__inflow", slots.Pool, "pool__level", "pool__inflow", 1000.0),
    "Stack": ("stack__head", "stack__flux", slots.Layer, "layer__head", "layer__flux", 1.0),
}


def by_hand(name, config):
    """The whole and its members in one process; what the whole has at the end."""
    out, given, member, member_in, member_out, scale = CASES[name]
    whole = getattr(slots, name)()
    whole.initialize(str(config))
    members = [member() for _ in range(len(whole.arrays[out]))]
    for one in members:
        one.initialize(str(config))
    while whole.get_current_time() < whole.get_end_time():
        sent = whole.arrays[out].copy()
        answers = [np.array(one.arrays[member_out]) / scale for one in members]
        for one, piece in zip(members, sent):
            one.set_value(member_in, np.asarray(piece).reshape(-1))
            one.update()
        whole.set_value(given, np.stack(answers).reshape(-1))
        whole.update()
    return whole.arrays[out]


@pytest.mark.parametrize("name", CASES)
def test_members_share_the_first_dimension(stage, name):
    """In both directions, with units that the receiver converts."""
    config = stage.write("config.json", json.dumps({"dt": 0.5, "end": 3.0}))
    out, given, member, member_in, member_out, _ = CASES[name]
    stage.describe(
        {
            "whole": {"o_i": [out], "s": [given], "o_f": ["end"]},
            "member": {"s": [member_in], "o_i": [member_out]},
            "keep": {"f_init": ["got"], "o_f": ["give"]},
        },
        {f"whole.{out}": f"member.{member_in}", f"member.{member_out}": f"whole.{given}", "whole.end": "keep.got"},
        {
            "whole": bmi(f"slots:{name}", config, f"--variable=end={out}"),
            "member": bmi(f"slots:{member.__name__}", config),
            "keep": PEER,
        },
        multiplicity={"member": 3 if name == "Basin" else 2},
    )
    assert "WARNING" not in stage.ends_well()
    ((time, _, _, array, _),) = stage.kept("keep")
    expected = by_hand(name, config)
    assert time == 3.0 and len(np.unique(expected)) == expected.size
    assert array.tobytes() == expected.tobytes()


def test_messages_by_slots_tell_units_and_names(stage):
    """What comes in the slots of a step are numbers, and nil, which leaves its part as it is."""
    config = stage.write("config.json", json.dumps({"dt": 1.0, "end": 1.0}))
    stage.describe(
        {
            "basin": {"o_i": ["level"], "s": ["inflow"], "o_f": ["end"]},
            "peer": {"f_init": ["got"], "o_f": ["give"]},
            "keep": {"f_init": ["got"], "o_f": ["give"]},
        },
        {"basin.level": "peer.got", "peer.give": "basin.inflow", "basin.end": "keep.got"},
        {
            "basin": bmi(
                "slots:Basin",
                config,
                *(f"--variable={port}=basin__{name}" for port, name in (("level", "level"), ("inflow", "inflow"))),
                "--variable=end=basin__level",
            ),
            "peer": PEER,
            "keep": PEER,
        },
        {"peer.reply": "nil_if_one"},
        multiplicity={"peer": 3},
    )
    stage.ends_well()
    for slot, level in enumerate((1.0, 2.0, 4.0)):
        ((_, _, names, array, about),) = stage.kept(f"peer[{slot}]")
        assert (names, array.shape, float(array), about) == (None, (), level, {"units": "m"})
    ((_, _, _, array, _),) = stage.kept("keep")
    level = np.array([1.0, 2.0, 4.0])
    # The first member answers nil: the inflow stays as the model had it.
    assert array.tobytes() == (level + (np.array([0.25, 2.0, 4.0]) + 0.1 * (level.mean() - level))).tobytes()


def test_another_number_of_members(stage):
    """The page names the port, its slots and the shape."""
    config = stage.write("config.json", json.dumps({}))
    stage.describe(
        {"basin": {"o_i": ["basin__level"]}, "peer": {"f_init": ["got"], "o_f": ["give"]}},
        {"basin.basin__level": "peer.got"},
        {"basin": bmi("slots:Basin", config), "peer": PEER},
        multiplicity={"peer": 2},
    )
    page = stage.fails()
    assert "port basin__level (O_I) has 2 slots, and basin__level has the shape [3]" in page
