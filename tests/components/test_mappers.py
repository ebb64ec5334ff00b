"""Duplicator, merger and splitter, between sources and sinks."""

import json

import numpy as np
import pytest


def data(instances, name):
    """The data that a sink has kept as JSON lines."""
    lines = (instances / name / "workdir/in.jsonl").read_text().splitlines()
    return [json.loads(line)["data"] for line in lines]


def lines_of(folder, name, messages):
    """Writes messages as (time, data)."""
    text = [json.dumps({"timestamp": time, "data": data}) + "\n" for time, data in messages]
    (folder / name).write_text("".join(text))


@pytest.mark.parametrize("how", ["concatenate", "stack"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("ports", ["o_i s", "o_f f_init"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_was_split_is_merged_again(model, how, axis, ports, order):
    """A file passes source -> splitter -> several conduits -> merger -> sink unchanged."""
    sends, receives = ports.split()
    steps = (5,) if sends == "o_i" else ()
    array = np.asarray(np.random.default_rng(7).normal(size=(*steps, 4, 4)), order=order)
    np.save(model.folder / "a.npy", array)
    model.add("source", "source", **{sends: "out"})
    model.add("splitter", "splitter", **{receives: "whole", sends: "parts"})
    model.add("member", "duplicator", multiplicity=4, **{receives: "in", sends: "out"})
    model.add("merger", "merger", **{receives: "parts", sends: "whole"})
    model.add("sink", "sink", **{receives: "in"})
    model.join(source__out="splitter.whole", splitter__parts="member.in", member__out="merger.parts")
    model.join(merger__whole="sink.in").set(source__file="a.npy", sink__file="a.npy", how=how, axis=axis)
    if steps:
        model.set(source__time_axis="true", dt=0.5)
    back = np.load(model.run() / "sink/workdir/a.npy")
    np.testing.assert_array_equal(back, array)


def test_sizes_divide_unequally_and_unconnected_ports_keep_their_piece(model):
    np.save(model.folder / "a.npy", np.arange(10))
    model.add("source", "source", o_f="out").add("splitter", "splitter", f_init="whole", o_f="a b c")
    model.add("first", "sink", f_init="in").add("last", "sink", f_init="in")
    model.join(source__out="splitter.whole", splitter__a="first.in", splitter__c="last.in")
    instances = model.set(source__file="a.npy", splitter__sizes="[2, 5, 3]").run()
    assert data(instances, "first")[0]["values"] == [0, 1]
    assert data(instances, "last")[0]["values"] == [7, 8, 9]


def test_lists_come_apart_and_together(model):
    lines_of(model.folder, "a.jsonl", [(0, [1, "x"]), (1, [{"y": 2.5}, None])])
    model.add("source", "source", o_i="out").add("splitter", "splitter", s="whole", o_i="a b")
    model.add("merger", "merger", s="a b", o_i="whole").add("sink", "sink", s="in")
    model.join(source__out="splitter.whole", splitter__a="merger.a", splitter__b="merger.b", merger__whole="sink.in")
    assert data(model.set(source__file="a.jsonl", how="list").run(), "sink") == [[1, "x"], [{"y": 2.5}, None]]


def test_copies_go_everywhere(model):
    lines_of(model.folder, "a.jsonl", [(0, 1), (1, 2)])
    model.add("source", "source", o_i="out").add("copy", "duplicator", f_init="in", o_f="one each")
    model.add("one", "sink", f_init="in").add("member", "sink", multiplicity=3, f_init="in")
    model.join(source__out="copy.in", copy__one="one.in", copy__each="member.in").set(source__file="a.jsonl")
    instances = model.run()
    for name in ["one", "member[0]", "member[1]", "member[2]"]:
        assert data(instances, name) == [1, 2]


def test_settings_travel_through_mappers(model):
    line = {"timestamp": 0.0, "next_timestamp": None, "settings": {"k": 5}, "data": {"x": 1}}
    (model.folder / "a.jsonl").write_text(json.dumps(line) + "\n")
    model.add("source", "source", o_i="out").add("each_step", "duplicator", s="in", o_i="out")
    model.add("each_use", "duplicator", f_init="in", o_f="out").add("sink", "sink", f_init="in")
    model.join(source__out="each_step.in", each_step__out="each_use.in", each_use__out="sink.in")
    model.set(source__file="a.jsonl")
    kept = model.run() / "sink/workdir/in.jsonl"
    assert json.loads(kept.read_text()) == line


def test_streams_are_merged_by_time(model):
    lines_of(model.folder, "a.jsonl", [(0, "a0"), (2, "a2"), (4, "a4")])
    lines_of(model.folder, "b.jsonl", [(1, "b1"), (2, "b2")])
    model.add("a", "source", o_i="out").add("b", "source", o_i="out").add("merger", "merger", s="a b", o_i="out")
    model.add("sink", "sink", s="in").join(a__out="merger.a", b__out="merger.b", merger__out="sink.in")
    model.set(a__file="a.jsonl", b__file="b.jsonl", merger__how="by-time")
    kept = (model.run() / "sink/workdir/in.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in kept]
    assert [record["data"] for record in records] == ["a0", "b1", "a2", "b2", "a4"]
    assert [record["next_timestamp"] for record in records] == [1.0, 2.0, 2.0, 4.0, None]


def test_what_goes_together_has_the_latest_time_and_announces_the_next_one_rightly(model):
    lines_of(model.folder, "a.jsonl", [(0, 1), (10, 2), (11, 3)])
    lines_of(model.folder, "b.jsonl", [(1, 1), (3, 2), (30, 3)])
    model.add("a", "source", o_i="out").add("b", "source", o_i="out").add("merger", "merger", s="a b", o_i="out")
    model.add("sink", "sink", s="in").join(a__out="merger.a", b__out="merger.b", merger__out="sink.in")
    model.set(a__file="a.jsonl", b__file="b.jsonl", merger__how="list")
    kept = (model.run() / "sink/workdir/in.jsonl").read_text().splitlines()
    times = [(record["timestamp"], record["next_timestamp"]) for record in map(json.loads, kept)]
    # The messages at 10 and at 3 go together at 10, then those at 11 and at 30; no message follows.
    assert times == [(1.0, 10.0), (10.0, 30.0), (30.0, None)]


def test_streams_are_merged_as_they_come(model):
    lines_of(model.folder, "a.jsonl", [(5, f"a{n}") for n in range(20)])
    lines_of(model.folder, "b.jsonl", [(n, f"b{n}") for n in range(20)])
    model.add("a", "source", o_i="out").add("b", "source", o_i="out").add("merger", "merger", s="a b", o_i="out")
    model.add("sink", "sink", f_init="in").join(a__out="merger.a", b__out="merger.b", merger__out="sink.in")
    model.set(a__file="a.jsonl", b__file="b.jsonl", merger__how="first-come")
    came = data(model.run(), "sink")
    assert sorted(came) == sorted([f"a{n}" for n in range(20)] + [f"b{n}" for n in range(20)])
    assert [text for text in came if text[0] == "a"] == [f"a{n}" for n in range(20)]
    assert [text for text in came if text[0] == "b"] == [f"b{n}" for n in range(20)]


def test_a_source_stands_in_for_a_submodel(model):
    """Two sources play a macro and a micro model from recorded messages."""
    lines_of(model.folder, "down.jsonl", [(n, n) for n in range(3)])
    lines_of(model.folder, "up.jsonl", [(n, 10 * n) for n in range(3)])
    model.add("macro", "source", o_i="down", s="up").add("micro", "source", f_init="down", o_f="up keep")
    model.add("sink", "sink", f_init="in")
    model.join(macro__down="micro.down", micro__up="macro.up", micro__keep="sink.in")
    model.set(macro__file="down.jsonl", micro__file="up.jsonl")
    assert data(model.run(), "sink") == [0, 10, 20]


def test_a_coarse_value_is_repeated_in_every_fine_step(model):
    """Next timestamps tell the interval of each value, so the outcome does not depend on which source is faster."""
    lines_of(model.folder, "coarse.jsonl", [(0, "a"), (10, "b"), (20, "c")])
    (model.folder / "fine.jsonl").write_text('{"data": 0}\n{"data": 1}\n{"data": 2}\n')
    model.add("coarse", "source", o_i="out").add("fine", "source", f_init="begin", o_i="out")
    model.add("merger", "merger", f_init="fine coarse", o_f="out").add("sink", "sink", f_init="in")
    model.join(coarse__out="[fine.begin, repeat merger.coarse]", fine__out="merger.fine", merger__out="sink.in")
    model.set(coarse__file="coarse.jsonl", fine__file="fine.jsonl", fine__dt=2, merger__how="list")
    kept = [json.loads(line) for line in (model.run() / "sink/workdir/in.jsonl").read_text().splitlines()]
    assert [record["data"] for record in kept] == [[n, text] for text in "abc" for n in range(3)]
    assert [record["timestamp"] for record in kept] == [0, 2, 4, 10, 12, 14, 20, 22, 24]


@pytest.mark.parametrize(
    ("kind", "ports", "settings", "why"),
    [
        ("duplicator", {"s": "in", "o_f": "out"}, {}, ["S (in)", "O_F (out)", "make the out ports O_I"]),
        ("splitter", {"s": "in", "o_i": "out b c"}, {}, ["extent 4 of axis 0 is no multiple of 3", "[2, 1, 1]"]),
        ("splitter", {"s": "in", "o_i": "out b"}, {"mapper__how": "list"}, ["on port 'in'", "`how: list` takes lists"]),
        ("splitter", {"s": "in", "o_i": "out"}, {"mapper__sizes": "[3]"}, ["[3] do not add up to 4"]),
        ("merger", {"s": "in", "o_i": "out"}, {"mapper__axis": 1}, ["no axis 1 in an array of rank 1"]),
        ("merger", {"s": "in", "o_i": "out"}, {"mapper__how": "stak"}, ['found "stak"', 'did you mean "stack"']),
        ("merger", {"f_init": "in", "o_f": "out"}, {"mapper__how": "by-time"}, ["S ports", "O_I ports"]),
    ],
)
def test_what_cannot_be_mapped_is_explained(model, kind, ports, settings, why):
    np.save(model.folder / "a.npy", np.arange(4))
    model.add("source", "source", o_i="out").add("mapper", kind, **ports)
    model.add("sink", "sink", **{"f_init" if "o_f" in ports else "s": "in"})
    model.join(source__out="mapper.in", mapper__out="sink.in").set(source__file="a.npy", **settings)
    said = model.fail()
    for part in ["mapper", *why]:
        assert part in said, said


def test_a_mapper_without_messages_is_refused(model):
    model.add("mapper", "duplicator", s="in", o_i="out").add("sink", "sink", s="in").join(mapper__out="sink.in")
    said = model.fail()
    assert "nothing is connected to an F_INIT or S port" in said, said


def test_senders_with_different_numbers_of_steps_are_named(model):
    lines_of(model.folder, "a.jsonl", [(0, 1), (1, 2)])
    lines_of(model.folder, "b.jsonl", [(0, 1)])
    model.add("a", "source", o_i="out").add("b", "source", o_i="out").add("merger", "merger", s="a b", o_i="out")
    model.add("sink", "sink", s="in").join(a__out="merger.a", b__out="merger.b", merger__out="sink.in")
    said = model.set(a__file="a.jsonl", b__file="b.jsonl", how="list").fail()
    assert "port 'b' is closed" in said and "there was a message on 'a'" in said, said
