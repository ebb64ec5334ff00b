"""Python functions as instances: many instances of one component, some beside programs, several runs in one process."""

from __future__ import annotations

import asyncio
import re
import sys
import threading

import numpy as np
import pytest
import titin
import titin.aio
from titin import hosting
from titin.model import Model

from ..conftest import TITIN
from .conftest import pair


def driver(instance):
    """Sends each member its number, and collects the answers."""
    found = []
    while instance.reuse():
        out = instance.port("out")
        for slot in range(out.slots):
            instance.send(out, slot, slot=slot, timestamp=0.0)
        found = [instance.receive("back", slot=slot).data for slot in range(out.slots)]
    return found


def member(instance):
    uses = 0
    while instance.reuse():
        number = instance.receive("in").data
        instance.send("out", [instance.name, number * instance.setting("factor", int)], timestamp=0.0)
        uses += 1
    return uses


MEMBER = """
import titin

with titin.Instance(f_init="in", o_f="out") as instance:
    while instance.reuse():
        number = instance.receive("in").data
        instance.send("out", [instance.name, number * instance.setting("factor", int)], timestamp=0.0)
"""


def ensemble(members: int | tuple[int, ...]) -> Model:
    model = Model("ensemble")
    model.component("driver", "driver", o_i="out", s="back")
    model.component("member", "member", f_init="in", o_f="out", multiplicity=members)
    model.conduit("driver.out", "member.in")
    model.conduit("member.out", "driver.back")
    model.settings = {"factor": 10, "member[1].factor": 100}
    return model


EXPECTED = [["member[0]", 0], ["member[1]", 100], ["member[2]", 20], ["member[3]", 30]]


def test_each_instance_of_a_component_runs_its_function(stage):
    run = titin.run(ensemble(4), {"driver": driver, "member": member}, run_dir=stage.folder / "run")
    assert run.returned.pop("driver") == EXPECTED
    assert run.returned == {f"member[{index}]": 1 for index in range(4)}


def test_functions_that_open_their_instances_themselves(stage):
    def opens():
        with titin.Instance(f_init="in", o_f="out") as instance:
            return member(instance)

    run = titin.run(ensemble(4), {"driver": driver, "member": opens}, run_dir=stage.folder / "run")
    assert run.returned["driver"] == EXPECTED


async def waits(instance):
    while await instance.reuse():
        await instance.receive("in")


def returns():
    return 3


async def returns_later():
    return 3


@pytest.mark.parametrize("function", [returns, returns_later])
def test_a_function_that_never_opens_its_instance(stage, function):
    raised, log = stage.fails(function, waits)
    assert isinstance(raised, titin.Error)
    assert "the function of sender returned without opening its instance" in log


def raises():
    raise KeyError("no such table")


async def raises_later():
    raises()


@pytest.mark.parametrize("function", [raises, raises_later])
def test_a_function_that_fails_before_it_opens_its_instance(stage, function):
    raised, log = stage.fails(function, waits)
    assert isinstance(raised, KeyError)
    assert "no such table" in log


class Holder:
    """Keeps its instance, as an object of a user may."""

    def __init__(self, raised=None):
        self.raised = raised

    def __call__(self):
        self.instance = titin.Instance()
        self.end()

    def end(self):
        if self.raised:
            raise self.raised


class LaterHolder(Holder):
    async def plays(self):
        self.instance = titin.aio.Instance()
        await self.instance.open()
        self.end()


HOLDERS = [Holder, lambda raised: LaterHolder(raised).plays]


@pytest.mark.parametrize("hold", HOLDERS, ids=["thread", "coroutine"])
def test_a_function_that_leaves_its_instance_open(stage, hold):
    """Something still holds the instance, yet the other functions do not wait for it."""
    raised, log = stage.fails(hold(None), waits)
    assert isinstance(raised, titin.UsageError)
    assert "the function of sender returned without closing its instance" in str(raised)
    assert "returned without closing its instance" in log


@pytest.mark.parametrize("hold", HOLDERS, ids=["thread", "coroutine"])
def test_a_function_that_fails_and_leaves_its_instance_open(stage, hold):
    raised, log = stage.fails(hold(KeyError("no such table")), waits)
    assert isinstance(raised, KeyError)
    assert "sender reported an error: KeyError: 'no such table'" in log


def test_a_coroutine_function_that_returns_before_its_task_is_done(stage):
    """The end of the other functions would decide how far the task comes, so an unfinished task is an error."""
    tasks = []

    async def sends(instance, sent):
        while await instance.reuse():
            await instance.send("out", 3, timestamp=0.0)
            sent.set()
            await asyncio.Event().wait()

    async def leaves():
        sent = asyncio.Event()
        tasks.append(asyncio.create_task(sends(await titin.aio.Instance().open(), sent)))
        await sent.wait()

    raised, log = stage.fails(leaves, waits)
    assert isinstance(raised, titin.UsageError)
    assert "the function of sender returned without closing its instance" in log


async def opens_and_raises():
    instance = await titin.aio.Instance().open()
    raise KeyError(f"no such table for {instance.name}")


def test_a_coroutine_function_that_fails_with_its_instance_in_a_variable(stage):
    raised, log = stage.fails(opens_and_raises, waits)
    assert isinstance(raised, KeyError)
    assert "no such table for sender" in log


def test_a_coroutine_function_that_opens_its_instance_in_a_task_of_its_own(stage):
    async def sends():
        async with titin.aio.Instance() as instance:
            while await instance.reuse():
                await instance.send("out", 3, timestamp=0.0)

    async def starts():
        await asyncio.create_task(sends())

    async def receives(instance):
        assert await instance.reuse()
        return (await instance.receive("in")).data

    assert stage.play(starts, receives)["receiver"] == 3


def test_a_function_for_one_instance(stage):
    def special(instance):
        while instance.reuse():
            instance.send("out", instance.receive("in").data, timestamp=0.0)
        return "special"

    functions = {"driver": driver, "member": member, "member[2]": special}
    run = titin.run(ensemble(4), functions, run_dir=stage.folder / "run")
    assert run.returned["member[2]"] == "special"
    assert run.returned["driver"] == [*EXPECTED[:2], 2, EXPECTED[3]]


def test_multiplicity_in_two_dimensions(stage):
    def rows(instance):
        while instance.reuse():
            for slot in range(instance.port("out").slots):
                instance.send("out", [instance.name, slot], slot=slot, timestamp=0.0)
            return_ = [instance.receive("back", slot=slot).data for slot in range(instance.port("back").slots)]
        return return_

    def cells(instance):
        while instance.reuse():
            instance.send("out", [*instance.receive("in").data, instance.name], timestamp=0.0)

    model = Model("table")
    model.component("row", "row", o_i="out", s="back", multiplicity=2)
    model.component("cell", "cell", f_init="in", o_f="out", multiplicity=(2, 3))
    model.conduit("row.out", "cell.in")
    model.conduit("cell.out", "row.back")
    returned = titin.run(model, {"row": rows, "cell": cells}, run_dir=stage.folder / "run").returned
    for row in range(2):
        assert returned[f"row[{row}]"] == [[f"row[{row}]", cell, f"cell[{row}][{cell}]"] for cell in range(3)]


def test_one_of_many_that_fails_is_named(stage):
    def fails(instance):
        while instance.reuse():
            number = instance.receive("in").data
            if number == 2:
                raise ArithmeticError("the matrix is singular")
            instance.send("out", number, timestamp=0.0)

    with pytest.raises(ArithmeticError, match="singular"):
        titin.run(ensemble(4), {"driver": driver, "member": fails}, run_dir=stage.folder / "run")
    log = (stage.folder / "run/titin_manager.log").read_text()
    assert "member[2] reported an error: ArithmeticError: the matrix is singular" in log


def test_programs_beside_functions(stage):
    model = ensemble(4)
    model.program("member", sys.executable, [str(stage.program("member", MEMBER))])
    run = titin.run(model, {"driver": driver}, run_dir=stage.folder / "run")
    assert run.returned == {"driver": EXPECTED}
    assert sorted(path.name for path in (run.directory / "instances").iterdir()) == [f"member[{i}]" for i in range(4)]


def test_some_instances_are_programs_and_some_functions(stage):
    """Messages go over tcp and in the process, to slots of one port."""
    model = ensemble(4)
    model.program("member", sys.executable, [str(stage.program("member", MEMBER))])
    functions = {"driver": driver, "member[1]": member, "member[3]": member}
    run = titin.run(model, functions, run_dir=stage.folder / "run")
    assert run.returned["driver"] == EXPECTED
    assert sorted(path.name for path in (run.directory / "instances").iterdir()) == ["member[0]", "member[2]"]


def test_a_program_that_fails_beside_functions(stage):
    model = pair()
    model.program("sender", sys.executable, ["-c", "raise SystemExit(3)"])
    lost = []

    def receiver(instance):
        try:
            while instance.reuse():
                instance.receive("in")
        except titin.PeerLost as raised:
            lost.append(str(raised))
            raise

    with pytest.raises(titin.Error, match=r"sender ended with exit code 3 before it had joined the run; see .*run"):
        titin.run(model, {"receiver": receiver}, run_dir=stage.folder / "run")
    assert len(lost) <= 1
    assert all("sender" in text for text in lost)


def test_a_function_that_fails_beside_programs(stage):
    model = pair()
    sender = "import titin\nwith titin.Instance() as i:\n    i.reuse()\n    while True: i.send('out', timestamp=0.0)\n"
    model.program("sender", sys.executable, [str(stage.program("sender", sender))])

    def receiver(instance):
        while instance.reuse():
            instance.receive("in")
            raise ArithmeticError("the matrix is singular")

    with pytest.raises(ArithmeticError, match="singular"):
        titin.run(model, {"receiver": receiver}, run_dir=stage.folder / "run")
    assert "PeerLost" in stage.output()
    assert "receiver" in stage.output()


def test_many_that_do_not_end_are_waited_for_at_once(monkeypatch):
    """The patience is for all threads together, whatever their number: it must not outlast the manager's patience."""
    clock = 0.0

    class Stuck:
        def join(self, patience):
            nonlocal clock
            clock += patience

    monkeypatch.setattr(hosting.time, "monotonic", lambda: clock)
    hosting._HostedFunctions({}, threads=[Stuck() for _ in range(100)])._wait(2.0)
    assert clock == 2.0


@pytest.mark.parametrize("echo", [titin.PortClosed, titin.PeerLost, titin.ConnectionFailed])
def test_of_several_errors_the_one_behind_the_others_is_raised(stage, echo):
    """Both functions raise after their instances are closed, so the run itself has gone well."""

    def sender():
        with titin.Instance() as instance:
            while instance.reuse():
                instance.send("out", 1, timestamp=0.0)
        raise echo("of another")

    def receiver():
        with titin.Instance() as instance:
            while instance.reuse():
                instance.receive("in")
        raise ArithmeticError("the matrix is singular")

    with pytest.raises(ArithmeticError):
        titin.run(pair(), {"sender": sender, "receiver": receiver}, run_dir=stage.folder / "run")


def test_a_function_in_code_of_its_own_is_called_out(stage):
    """The function makes no call of titin that could tell it about the failure of the run."""
    there, left = threading.Event(), []

    def sender(instance):
        instance.reuse()
        there.wait()
        raise ArithmeticError("the matrix is singular")

    def receiver(instance):
        instance.reuse()
        there.set()
        try:
            while True:
                sum(range(1000))
        except BaseException as raised:
            left.append(type(raised))
            raise

    with pytest.raises(ArithmeticError):
        titin.run(pair(), {"sender": sender, "receiver": receiver}, run_dir=stage.folder / "run")
    assert left == [titin.PeerLost]


def test_an_instance_that_a_failed_function_holds_is_let_go(stage):
    """The receiver waits for messages of the failed function's instance. Only the end of that instance ends the
    wait."""

    def sender():
        instance = titin.Instance()
        instance.reuse()
        raise ArithmeticError("the matrix is singular")

    raised, log = stage.fails(sender, waits)
    assert isinstance(raised, ArithmeticError)
    assert "sender" in log


@pytest.mark.parametrize("when", ["before all have joined", "in the loop"])
def test_a_task_that_would_end_the_process_fails_the_run(stage, when):
    """The event loop raises the SystemExit, and not the function that has made the task."""

    async def leaves():
        sys.exit(3)

    async def sender(instance):
        await instance.reuse()
        await instance.send("out", 1, timestamp=0.0)
        await go_on.wait()
        await asyncio.create_task(leaves())

    async def receiver(instance):
        await instance.reuse()
        await instance.receive("in")
        go_on.set()
        await instance.receive("in")

    async def hasty():
        await asyncio.create_task(leaves())

    go_on = asyncio.Event()
    raised, _ = stage.fails(sender if when == "in the loop" else hasty, receiver)
    assert isinstance(raised, titin.Error)
    assert str(raised) == "a task of an async function called sys.exit(3), which ends no function: return from it"


def refused(stage, model, functions) -> str:
    """Reasons why a run could not begin."""
    with pytest.raises(titin.UsageError, match="could not begin") as raised:
        titin.run(model, functions, run_dir=stage.folder / "run")
    return str(raised.value)


@pytest.mark.parametrize("model", [5, {"models": {}}, None])
def test_what_is_no_model_is_named(model):
    with pytest.raises(titin.UsageError, match=re.escape(f"or a titin.model; found {model!r}")):
        titin.run(model, {})


def test_names_that_are_not_in_the_model(stage):
    assert 'did you mean "receiver"' in refused(stage, pair(), {"sender": driver, "reciever": driver})


def test_a_component_without_anything_that_runs_it(stage):
    said = refused(stage, pair(), {"sender": driver})
    assert 'models > pair > components > receiver: error: there is no program or model "receiver"' in said
    assert "hand over a function for it" in said


def test_all_that_is_wrong_with_a_model_built_in_python_is_told_by_its_keys(stage):
    model = pair("lats")
    model.conduit("sender.spare", "receiver.in")
    said = refused(stage, model, {"sender": driver, "receiver": driver})
    assert 'models > pair > conduits > sender.out: error: there is no filter "lats"' in said
    assert '"sender.out" (models > pair > conduits > sender.out) and "sender.spare" both send to it' in said
    assert "-:" not in said


def test_what_is_wrong_with_a_file_is_told_by_its_lines(stage):
    model = stage.folder / "model.ymmsl"
    pair("lats").write(model)
    assert f"{model}:18:19: error: " in refused(stage, model, {"sender": driver, "receiver": driver})


def test_a_run_directory_that_is_taken_is_named(stage):
    functions = {"driver": driver, "member": member}
    run = titin.run(ensemble(4), functions, run_dir=stage.folder / "run")
    assert f"{run.directory} holds an earlier run" in refused(stage, ensemble(4), functions)


def test_runs_after_and_beside_each_other(stage):
    """A process may take part in several runs."""
    found = {}

    def play(name):
        run = titin.run(ensemble(4), {"driver": driver, "member": member}, run_dir=stage.folder / name)
        found[name] = run.returned["driver"]

    play("first")
    play("second")
    threads = [threading.Thread(target=play, args=(f"beside-{index}",)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(("first", "second", "beside-0", "beside-1", "beside-2"), EXPECTED)


def test_relative_paths_of_a_model_begin_in_the_current_directory(stage, monkeypatch):
    """Relative paths of programs, filters, staged files, and files of sources."""
    monkeypatch.chdir(stage.folder)
    (stage.folder / "bin").mkdir()
    program = stage.folder / "bin/doubles"
    text = "import titin\nwith titin.Instance(f_init='in', o_f='out') as i:\n    while i.reuse():\n"
    text += "        i.send('out', 2 * i.receive('in').data + float(open('offset').read()), timestamp=0.0)\n"
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o755)
    (stage.folder / "offset").write_text("0.5")
    (stage.folder / "bin/own_filter.py").write_text("def negative(data):\n    return -data\n")
    np.save(stage.folder / "numbers.npy", np.array([1.0, 2.0]))

    def receiver(instance):
        while instance.reuse():
            found = instance.receive("in").data
        return found

    model = Model("paths")
    model.component("numbers", "titin.source", o_f="out")
    model.component("doubles", "doubles", f_init="in", o_f="out")
    model.component("receiver", "receiver", f_init="in")
    model.conduit("numbers.out", "doubles.in", "negative")
    model.conduit("doubles.out", "receiver.in")
    model.settings = {"numbers.file": "numbers.npy"}
    model.program("doubles", "bin/doubles")
    model.titin = {
        "filters": {"negative": {"python": "own_filter:negative"}},
        "stage": {"doubles": {"in": ["offset"]}},
    }
    run = titin.run(model, {"receiver": receiver}, run_dir="run")
    np.testing.assert_array_equal(run.returned["receiver"], [-1.5, -3.5])


def test_files_with_functions(stage):
    """Runs several files, merged, and a path given as text."""
    model = ensemble(4)
    settings, model.settings = model.settings, {}
    model.write(stage.folder / "model.ymmsl")
    text = "ymmsl_version: v0.2\nsettings: " + str(settings).replace("'", '"')
    (stage.folder / "settings.ymmsl").write_text(text)
    files = [stage.folder / "model.ymmsl", str(stage.folder / "settings.ymmsl")]
    run = titin.run(files, {"driver": driver, "member": member}, run_dir=stage.folder / "run")
    assert run.returned["driver"] == EXPECTED


def test_functions_for_all_instances_one_by_one(stage):
    functions = {"driver": driver} | {f"member[{index}]": member for index in range(3)}
    assert 'component "member"' in refused(stage, ensemble(4), functions)
    run = titin.run(ensemble(4), functions | {"member[3]": member}, run_dir=stage.folder / "run")
    assert run.returned["driver"] == EXPECTED
    assert 'no instance "member[4]"' in refused(stage, ensemble(4), functions | {"member": member, "member[4]": member})


async def coroutines(instance):
    yield instance.reuse()


def generator(instance):
    yield instance.reuse()


class Later:
    async def __call__(self, instance):
        instance.reuse()


@pytest.mark.parametrize(
    ("function", "reason"),
    [(coroutines, "is async"), (Later(), "is async"), (generator, "is a generator"), (3, "found 3")],
)
def test_what_a_call_does_not_run_is_refused(stage, function, reason):
    with pytest.raises(titin.UsageError, match=f"sender.*{reason}"):
        titin.run(pair(), {"sender": function, "receiver": driver}, run_dir=stage.folder / "run")
    assert not (stage.folder / "run").exists()


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("kill -KILL $$", "the titin command was ended by SIGKILL"),
        ("""echo '{"outcome": "interrupted", "directory": "there"}'; exit 1""", "the run was interrupted; see there"),
    ],
)
def test_a_command_that_is_ended_by_others(tmp_path, monkeypatch, does, words):
    command = tmp_path / "titin"
    command.write_text(f"#!/bin/sh\n{does}\n")
    command.chmod(0o755)
    monkeypatch.setattr(hosting, "_command", lambda: str(command))
    with pytest.raises(titin.Error, match=words):
        titin.run(pair(), {"sender": driver, "receiver": driver})


def test_the_command_is_that_of_this_installation(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert hosting._command() == str(TITIN)
