"""Views of received data live as long as anybody holds one: past close(), past the sender's end, in forked workers."""

from __future__ import annotations

import gc
import os
import pickle

import numpy as np
import pytest

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
    assert "child: " in output
    assert "fork" in output
    assert "parent: done" in output


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
    """A hundred messages of 20 MB pass through far less memory, if none is held."""

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
    """Memory of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_messages_are_not_pickled_but_their_data_are(echo):
    message = echo(np.arange(3.0))
    with pytest.raises(TypeError, match=r"message.data.copy\(\)"):
        pickle.dumps(message)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(message.data)), [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(message.data, [0.0, 1.0, 2.0])


def available() -> int:
    """Memory that may be used without swapping."""
    with open("/proc/meminfo") as meminfo:
        sizes = dict(line.split(":") for line in meminfo)
    return int(sizes["MemAvailable"].split()[0]) * 1024


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
