"""The data that a source sends and a sink keeps are those of the file, in every format."""

import json

import ml_dtypes  # noqa: F401, as NumPy has no bfloat16 without it
import numpy as np
import pytest


def copy(model, name, ports=("o_i", "s"), **settings):
    """Sends a source's file to a sink; returns the file that the sink has kept."""
    sends, receives = ports
    model.add("source", "source", **{sends: "out"}).add("sink", "sink", **{receives: "in"})
    model.join(source__out="sink.in").set(source__file=name, sink__file=name, **settings)
    return model.run() / "sink/workdir" / name


DTYPES = ["?", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16", "bfloat16"]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_keeps_type_and_order(model, dtype, order):
    array = np.asarray(np.arange(6).reshape(2, 3) % 2, dtype=dtype, order=order)
    np.save(model.folder / "a.npy", array)
    kept = copy(model, "a.npy", ports=("o_f", "f_init"))
    assert kept.read_bytes() != b""
    back = np.load(kept)
    if dtype == "bfloat16":
        # NumPy saves and loads types of other packages as bytes.
        back = back.view(dtype)
    assert back.dtype == array.dtype and back.flags.f_contiguous == array.flags.f_contiguous
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_first_axis_is_time(model, order):
    array = np.asarray(np.random.default_rng(1).normal(size=(7, 3, 2)), order=order)
    np.save(model.folder / "a.npy", array)
    kept = copy(model, "a.npy", source__time_axis="true", source__dt="1 min", source__t0=60)
    np.testing.assert_array_equal(np.load(kept), array)
    times = np.genfromtxt(kept.with_name("a.times.csv"), delimiter=",", names=True)
    np.testing.assert_array_equal(times["timestamp"], 60.0 * np.arange(1, 8))
    np.testing.assert_array_equal(times["next_timestamp"], np.append(60.0 * np.arange(2, 8), np.nan))


def test_times_are_in_the_unit_of_timestamps(model):
    np.save(model.folder / "a.npy", np.arange(3.0))
    model.rest = "titin: {time_unit: h}\n"
    kept = copy(model, "a.npy", source__time_axis="true", source__dt="30 min", source__t0=2)
    times = np.genfromtxt(kept.with_name("a.times.csv"), delimiter=",", names=True)
    np.testing.assert_array_equal(times["timestamp"], [2.0, 2.5, 3.0])


def test_numbers_with_the_most_significant_byte_first_are_turned(model):
    array = np.array([1.5, -2.25], dtype=">f8")
    np.save(model.folder / "a.npy", array)
    back = np.load(copy(model, "a.npy", ports=("o_f", "f_init")))
    assert back.dtype == "<f8" and back.tolist() == array.tolist()


def test_a_sinks_files_are_a_sources_files(model):
    """Times, steps and shapes survive two runs."""
    times = "timestamp,next_timestamp\n0.5,1.25\n1.25,2.5\n2.5,\n"
    (model.folder / "a.times.csv").write_text(times)
    array = np.arange(6, dtype="<f4").reshape(3, 2)
    np.save(model.folder / "a.npy", array)
    kept = copy(model, "a.npy")
    assert kept.with_name("a.times.csv").read_text() == times
    assert np.load(kept).tobytes() == array.tobytes()


def test_a_series_is_a_file_a_message(model):
    for step in range(3):
        np.save(model.folder / f"s_{step:06}.npy", np.full(step + 1, step))  # shapes may differ
    model.add("source", "source", o_i="out").add("sink", "sink", s="in").join(source__out="sink.in")
    model.set(source__file='"s_{step}.npy"', sink__file='"k_{step}.npy"', dt=2)
    kept = model.run() / "sink/workdir"
    for step in range(3):
        np.testing.assert_array_equal(np.load(kept / f"k_{step:06}.npy"), np.full(step + 1, step))
    assert (kept / "k.times.csv").read_text().splitlines()[1:] == ["0.0,2.0", "2.0,4.0", "4.0,"]


def test_csv_comes_back_as_it_was(model):
    text = "timestamp,next_timestamp,value_0,value_1\n0.0,60.0,1.5,nan\n60.0,,0.1,-1e300\n"
    (model.folder / "a.csv").write_text(text)
    assert copy(model, "a.csv").read_text() == text


def test_csv_keeps_the_names_of_its_columns(model):
    text = 'timestamp,next_timestamp,north,"south, low"\n0.0,60.0,1.5,nan\n60.0,,0.1,-1e300\n'
    (model.folder / "a.csv").write_text(text)
    assert copy(model, "a.csv").read_text() == text


def test_csv_as_maps(model):
    text = 'timestamp,next_timestamp,name,n,wet\n0.0,1.0,"a, b",3,true\n1.0,,c,4,\n'
    (model.folder / "a.csv").write_text(text)
    assert copy(model, "a.csv", source__form="map").read_text() == text


def test_csv_as_one_table(model):
    (model.folder / "a.csv").write_text("x,name\n1,a\n2,b\n")
    model.add("source", "source", o_f="out").add("sink", "sink", f_init="in").join(source__out="sink.in")
    kept = model.set(source__file="a.csv", source__form="table").run() / "sink/workdir/in.jsonl"
    assert json.loads(kept.read_text())["data"] == {
        "x": {"$array": "int64", "shape": [2], "values": [1, 2]},
        "name": ["a", "b"],
    }


def test_lines_keep_everything(model):
    lines = [
        {
            "timestamp": 0.0,
            "next_timestamp": 0.5,
            "settings": {"k": 2.0, "n": 3},
            "data": {"b": [1, 2.0, None], "a": "é"},
        },
        {"timestamp": 0.5, "next_timestamp": 0.5, "data": {"$bytes": "00ff"}},
        {
            "timestamp": 0.5,
            "next_timestamp": None,
            "data": [
                {"$array": "complex64", "shape": [1], "names": ["x"], "values": [0.1, "inf"]},
                {"$array": "int16", "shape": [2, 2], "order": "F", "values": [1, 2, 3, 4]},
                {"$float": "nan"},
                True,
                2**63,
            ],
        },
    ]
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    (model.folder / "a.jsonl").write_text(text)
    assert copy(model, "a.jsonl").read_text() == text


def test_a_repeated_file_moves_on_in_time(model):
    (model.folder / "a.csv").write_text("t,x\n0,1\n6,2\n")
    kept = copy(model, "a.csv", source__repeat="true", source__period="1 min", source__t_max=100)
    assert [line.split(",")[0] for line in kept.read_text().splitlines()[1:]] == ["0.0", "6.0", "60.0", "66.0"]


def test_ports_are_sent_in_the_order_of_time(model):
    """Two files with steps of their own. The settings of a port go before those of the component."""
    (model.folder / "fast.csv").write_text("t,x\n0,1\n1,2\n2,3\n")
    (model.folder / "slow.csv").write_text("t;y\n0;10\n2;30\n")
    model.add("source", "source", o_i="fast slow").add("fast", "sink", s="in").add("slow", "sink", s="in")
    model.join(source__fast="fast.in", source__slow="slow.in")
    model.set(source__file="fast.csv", source__slow__file="slow.csv", source__slow__delimiter='";"')
    instances = model.run()

    def values(name):
        lines = (instances / name / "workdir/in.jsonl").read_text().splitlines()
        return [json.loads(line)["data"]["values"][0] for line in lines]

    assert values("fast") == [1.0, 2.0, 3.0]
    assert values("slow") == [10.0, 30.0]


def test_a_file_larger_than_the_buffer_streams_through(model):
    array = np.arange(400 * 25_000, dtype="<f8").reshape(400, 25_000)  # 80 MB, in messages of 200 kB
    np.save(model.folder / "a.npy", array)
    model.rest = "titin:\n  buffer: {default: {messages: 2}}\n"
    kept = copy(model, "a.npy", source__time_axis="true", dt=1)
    assert np.load(kept, mmap_mode="r").shape == array.shape
    np.testing.assert_array_equal(np.load(kept), array)


@pytest.mark.parametrize(
    ("name", "text", "settings", "why"),
    [
        ("a.csv", "t,x\n0,1\n1,y\n", {}, ["a.csv:3", "column 'x': 'y' is no number", "form: map"]),
        ("a.csv", "x\n1\n2\n", {}, ["a.csv:3", "it has no time", "`dt`"]),
        ("a.jsonl", '{"data": 1}\n{"dta": 2}\n', {"dt": 1}, ["a.jsonl:2", "'dta'"]),
        ("a.npy", "hello, world", {}, ["a.npy: it is no .npy file"]),
        ("a.txt", "", {}, ["a.txt: its ending says no format", "`format`"]),
        ("a.csv", "t,x\n0,1\n", {"source__fromat": "csv"}, ['no setting "fromat"', 'did you mean "format"']),
        ("a.csv", "t,x\n0,1\n", {"source__form": "maps"}, ['found "maps"', 'did you mean "map"']),
        ("a.csv", "t,x\n0,1\n", {"source__repeat": "true", "source__period": 1}, ["repeated for ever", "t_max"]),
    ],
)
def test_what_is_wrong_is_said_with_its_place(model, name, text, settings, why):
    (model.folder / name).write_text(text)
    model.add("source", "source", o_i="out").add("sink", "sink", s="in").join(source__out="sink.in")
    said = model.set(source__file=name, **settings).fail()
    for part in ["source", *why]:
        assert part in said, said


def test_a_missing_file_says_where_it_was_looked_for(model):
    model.add("source", "source", o_i="out").add("sink", "sink", s="in").join(source__out="sink.in")
    said = model.set(source__file="a.csv").fail()
    assert f"a.csv: it is not in the work directory (`titin: stage` copies files there), nor in {model.folder}" in said


def test_an_array_that_changes_shape_needs_files_of_its_own(model):
    lines = [{"timestamp": t, "data": {"$array": "int8", "shape": [t + 1], "values": [0] * (t + 1)}} for t in range(2)]
    (model.folder / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    model.add("source", "source", o_i="out").add("sink", "sink", s="in").join(source__out="sink.in")
    said = model.set(source__file="a.jsonl", sink__file="k.npy").fail()
    assert "message 1 at time 1.0 is an array of int8 with shape [2]" in said and "{step}" in said, said


def test_too_many_messages_for_one_use_are_refused(model):
    (model.folder / "a.csv").write_text("t,x\n0,1\n1,2\n")
    model.add("source", "source", o_f="out").add("sink", "sink", f_init="in").join(source__out="sink.in")
    said = model.set(source__file="a.csv").fail()
    assert "it has several messages" in said and "O_I" in said, said


def test_a_use_takes_one_of_several_messages(model):
    """The last of three is left over, as there are two uses."""
    (model.folder / "a.csv").write_text("t,x\n0,1\n1,2\n2,3\n")
    (model.folder / "uses.csv").write_text("t,x\n0,0\n1,0\n")
    model.add("uses", "source", o_i="out").add("source", "source", f_init="in", o_f="out")
    model.add("sink", "sink", f_init="in").join(uses__out="source.in", source__out="sink.in")
    model.set(uses__file="uses.csv", source__file="a.csv", sink__file="kept.csv")
    kept = (model.run() / "sink/workdir/kept.csv").read_text().splitlines()
    assert [float(row.split(",")[-1]) for row in kept[1:]] == [1, 2]
