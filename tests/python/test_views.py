"""Views of received data live as long as the program holds one: past close(), past the sender's end, in forked
workers."""

from __future__ import annotations

import gc
import os
import pickle
import sys

import numpy as np
import pytest
import titin

from .conftest import pair

SENDER = """
import numpy as np
import titin

with titin.Instance(o_i="out spare") as instance:
    while instance.reuse():
        for time in range(20):
            instance.send("out", np.full(10_000 * (1 + time % 3), time), timestamp=time)
"""

RECEIVER = """
import titin

views = []
with titin.Instance(s="in other") as instance:
    while instance.reuse():
        for time in range(20):
            views.append(instance.receive("in").data)
del instance
assert [int(view.min()) for view in views] == [int(view.max()) for view in views] == list(range(20))
views[5] = views[5][::2].reshape(-1, 2).T
del views[7:]
assert views[5].min() == views[5].max() == 5
print("all there")
"""


def test_views_outlive_the_sender_and_the_instance(stage):
    stage.run(pair(), sender=SENDER, receiver=RECEIVER)
    assert "all there" in stage.output()


FORKING = """
import multiprocessing
import os
import titin

def total(index):
    # In a worker forked from this process; the views are the parent's.
    return float(views[index].sum())

views = []
with titin.Instance(s="in other") as instance:
    while instance.reuse():
        views += [instance.receive("in").data for _ in range(20)]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            sums = pool.map(total, range(20))
        assert sums == [float(view.sum()) for view in views], sums

        child = os.fork()
        if child == 0:
            try:
                instance.receive("in")
            except titin.Forked as forked:
                print(f"child: {forked}", flush=True)
            # Leaves by the with block, which must not end the parent's instance.
            raise SystemExit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print("parent: done")
"""


def test_forked_workers_read_views_and_leave_the_instance_alone(stage):
    stage.run(pair(), sender=SENDER, receiver=FORKING)
    output = stage.output()
    assert "child: this process was forked from one that uses titin: the instance stays with the parent" in output
    assert "parent: done" in output


MANY = """
import numpy as np
import titin

with titin.Instance(o_i="out spare") as instance:
    instance.reuse()
    for time in range(200):
        instance.send("out", np.full(10_000, time), timestamp=time)
"""

LETTING_GO = """
import os
import titin

with titin.Instance(s="in other") as instance:
    instance.reuse()
    # Ten at a time, so that the memory of the first ones is soon wanted for others.
    held = [instance.receive("in").data for _ in range(10)]
    wait, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(wait, 1)
        os._exit(any((view != time).any() for time, view in enumerate(held)))
    os.close(wait)
    for begin in range(10, 200, 10):
        held = None
        held = [instance.receive("in").data for _ in range(10)]
        assert all((view == begin + offset).all() for offset, view in enumerate(held))
    os.write(go, b"!")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child saw another message"
print("both read theirs")
"""


def test_a_forked_child_sees_what_its_parent_has_let_go(stage):
    stage.run(pair(), sender=MANY, receiver=LETTING_GO)
    assert "both read theirs" in stage.output()


LOGGING = """
import logging
import multiprocessing
import titin
import warnings

# Else Python itself would leave all but the first one out.
warnings.simplefilter("always")

def work(number):
    logging.getLogger("worker").warning("from worker %d", number)

with titin.Instance(s="in other") as instance:
    while instance.reuse():
        logging.getLogger().addHandler(titin.LogHandler(instance))
        with multiprocessing.get_context("fork").Pool(1) as pool:
            pool.map(work, range(20))
        logging.warning("from the parent")
        for _ in range(20):
            instance.receive("in")
"""


def test_log_records_of_forked_workers_are_dropped_with_one_warning(stage):
    stage.run(pair(), sender=SENDER, receiver=LOGGING)
    said = (stage.folder / "run/instances/receiver/stderr.txt").read_text()
    assert "Traceback" not in said
    assert said.count("RuntimeWarning: log records of this process go nowhere: receiver belongs to") == 1
    log = (stage.folder / "run/titin_manager.log").read_text()
    assert "from the parent" in log
    assert "from worker" not in log + said


WORKING = """
import multiprocessing
import sys
import titin

def total(connection, view):
    # A child that holds views, uses and drops them, and ends as children do.
    connection.send((float(view.sum()), view.flags.writeable))
    connection.close()

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with titin.Instance(s="in other") as instance:
        while instance.reuse():
            held = []
            for time in range(20):
                message = instance.receive("in")
                held.append(message.data)
                if time % 10 == 5:
                    # The run goes on in the parent while the child lives, and after it.
                    ours, theirs = context.Pipe()
                    child = context.Process(target=total, args=(theirs, held[time]))
                    child.start()
                    found, writeable = ours.recv()
                    child.join()
                    assert child.exitcode == 0, child.exitcode
                    assert found == float(held[time].sum()), found
                    # A copy is the child's own; what it shares with us it may not change either.
                    assert writeable == (sys.argv[1] != "fork")
    assert [int(view.min()) for view in held] == [int(view.max()) for view in held] == list(range(20))
    print("all there")
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing(stage, method):
    model = pair()
    model.program("receiver", sys.executable, [str(stage.program("receiver", WORKING)), method])
    stage.run(model, sender=SENDER)
    assert "all there" in stage.output()


def test_views_of_other_kinds_live_as_long(stage):
    """Objects that share the memory of a view keep the memory, past the message, the view and the instance."""

    def sender(instance):
        while instance.reuse():
            for time in range(6):
                instance.send("out", np.full((300, 100), time, order="F" if time % 2 else "C"), timestamp=time)
            instance.send("out", {"nested": [np.full(5000, 6)], "bytes": b"7" * 5000}, timestamp=6)

    def receiver(instance):
        while instance.reuse():
            views = [instance.receive("in").data for _ in range(6)]
            nested = instance.receive("in").data
            return_ = [
                memoryview(views[0]),
                np.from_dlpack(views[1]),
                np.frombuffer(memoryview(views[2]), views[2].dtype),
                views[3].T[::2],
                np.asarray(memoryview(views[4])[10:20]),
                views[5].view("u8"),
                nested["nested"][0][1:],
                memoryview(nested["bytes"]),
            ]
            for one, view in zip(return_[:4], views):
                assert np.shares_memory(np.asarray(one), view)
            assert all(np.asarray(one).flags.writeable is False for one in return_)
        return return_

    kept = stage.play(sender, receiver)["receiver"]
    gc.collect()
    # These arrays would overwrite memory that had been freed.
    crowd = [np.full(30_000, 99) for _ in range(20)]
    assert [int(np.asarray(one).max()) for one in kept[:5]] == [0, 1, 2, 3, 4]
    assert [int(np.asarray(one).min()) for one in kept[:5]] == [0, 1, 2, 3, 4]
    assert kept[0].readonly and kept[0].shape == (300, 100)
    assert set(kept[5].ravel().tolist()) == {5}
    assert set(kept[6].tolist()) == {6}
    assert bytes(kept[7]) == b"7" * 5000
    assert len(crowd) == 20


def test_views_are_sent_on(stage):
    """A received array may be sent again unchanged, or through DLPack or a memoryview."""
    model = pair()
    model.component("end", "end", s="in")
    model.conduit(model.components["receiver"].port("o_i", "on"), "end.in")

    def sender(instance):
        while instance.reuse():
            instance.send("out", np.arange(12.0).reshape(3, 4), timestamp=0.0)

    def receiver(instance):
        while instance.reuse():
            data = instance.receive("in").data
            for time, one in enumerate([data, np.from_dlpack(data), memoryview(data), data.T]):
                instance.send("on", one, timestamp=time)

    def end(instance):
        while instance.reuse():
            found = [instance.receive("in").data for _ in range(4)]
        return found

    functions = {"sender": sender, "receiver": receiver, "end": end}
    found = titin.run(model, functions, run_dir=stage.folder / "run").returned["end"]
    for one in found[:3]:
        np.testing.assert_array_equal(one, np.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(found[3], np.arange(12.0).reshape(3, 4).T)
    assert found[3].flags.f_contiguous


def test_ten_thousand_messages_held(stage):
    def sender(instance):
        while instance.reuse():
            for time in range(10_000):
                instance.send("out", np.full(3, time), timestamp=time)

    def receiver(instance):
        while instance.reuse():
            return_ = [instance.receive("in").data for _ in range(10_000)]
        return return_

    views = stage.play(sender, receiver)["receiver"]
    assert all((view == time).all() for time, view in enumerate(views))


def test_memory_goes_back_when_the_last_view_does(stage):
    """A hundred messages of 20 MB pass through far less memory, if the program holds none of them."""

    def sender(instance):
        data = np.zeros(20_000_000, "u1")
        while instance.reuse():
            for time in range(100):
                instance.send("out", data, timestamp=time)
                instance.receive("back")

    def receiver(instance):
        while instance.reuse():
            for time in range(100):
                view = instance.receive("in").data[::1000]
                del view
                gc.collect(0)
                instance.send("reply", timestamp=time)

    model = pair()
    model.conduit(model.components["receiver"].port("o_i", "reply"), model.components["sender"].port("s", "back"))
    model.titin = {"buffer": {"default": {"messages": 1}}}
    before = resident()
    stage.play(sender, receiver, model)
    assert resident() - before < 400_000_000


def resident() -> int:
    """The memory of this process, in bytes."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_messages_are_not_pickled_but_their_data_are(echo):
    message = echo(np.arange(3.0))
    with pytest.raises(TypeError, match=r"message.data.copy\(\)"):
        pickle.dumps(message)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(message.data)), [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(message.data, [0.0, 1.0, 2.0])


def available() -> int:
    """Memory that may be used without swapping, in bytes."""
    with open("/proc/meminfo") as meminfo:
        sizes = dict(line.split(":") for line in meminfo)
    return int(sizes["MemAvailable"].split()[0]) * 1024


@pytest.mark.parametrize("write", ["data[0] = 1", "data += 1", "data.sort()", "np.add(data, 1, out=data)"])
def test_who_writes_to_what_was_received_is_told_of_copy(stage, write):
    def sender(instance):
        instance.reuse()
        instance.send("out", np.zeros(3), timestamp=0)

    def receiver(instance):
        instance.reuse()
        exec(write, {"np": np, "data": instance.receive("in").data})

    raised, log = stage.fails(sender, receiver)
    assert "read-only" in str(raised)
    [note] = raised.__notes__
    assert "message.data.copy()" in note
    assert note in log


@pytest.mark.skipif(available() < 14_000_000_000, reason="needs 14 GB of memory")
def test_five_gibibytes_in_one_array(stage):
    """Sizes are 64 bits everywhere: one array, and one in a structure, of more than 4 GiB, over tcp."""
    sender = """
import numpy as np
import titin

data = np.zeros(5 * 2**30, "u1")
data[::2**20] = np.arange(5 * 2**10) % 251
with titin.Instance(o_i="out spare") as instance:
    while instance.reuse():
        instance.send("out", data, timestamp=0.0)
        instance.send("out", {"data": data}, timestamp=1.0)
"""
    receiver = """
import numpy as np
import titin

def check(data):
    assert data.shape == (5 * 2**30,)
    assert np.array_equal(data[::2**20], np.arange(5 * 2**10) % 251)
    assert not data[1::2**20].any()

with titin.Instance(s="in other") as instance:
    while instance.reuse():
        check(instance.receive("in").data)
        check(instance.receive("in").data["data"])
"""
    model = pair()
    model.titin = {"buffer": {"default": {"messages": 1}}}
    stage.run(model, sender=sender, receiver=receiver)
