"""`last`, `repeat` and `pad` choose by the steps of sends, whichever program is faster, and whatever the timestamps."""

from __future__ import annotations

import threading

import pytest
import titin
from titin.model import Model

from .conftest import Role, Stage

#: Two uses of the coarse model, of three steps each.
USES, STEPS = 2, 3


def driver(instance: titin.Instance) -> None:
    while instance.reuse():
        for use in range(USES):
            instance.send("call", use, timestamp=0.0)
            instance.receive("back")


def coarse(*sends: int) -> Role:
    """The coarse model sends its state in these steps, and calls the other models in all steps. Its simulated time
    stands still."""

    def function(instance: titin.Instance) -> None:
        while instance.reuse():
            use = instance.receive("call").data
            for step in range(STEPS):
                if step in sends:
                    instance.send("state", 10 * use + step, timestamp=0.0)
                for call, answer in [("first", "then"), ("go", "done")]:
                    # No conduit is connected to this port, so the send counts no step.
                    instance.send("spare", timestamp=0.0)
                    instance.send(call, timestamp=0.0)
                    instance.receive(answer)
            instance.send("back", timestamp=0.0)

    return function


def other(instance: titin.Instance) -> None:
    while instance.reuse():
        instance.receive("start")
        instance.send("end", timestamp=0.0)


def fine(instance: titin.Instance) -> None:
    """The fine model asks twice in each use."""
    while instance.reuse():
        instance.receive("go")
        for _ in range(2):
            instance.send("ask", timestamp=0.0)
            instance.receive("answer")
        instance.send("done", timestamp=0.0)


def asked(instance: titin.Instance) -> list[int | None]:
    """The states of the coarse model that the asked model got, one for each of its uses."""
    got = []
    while instance.reuse():
        instance.receive("ask")
        got.append(instance.receive("state").data)
        instance.send("answer", timestamp=0.0)
    return got


def nested(*filters: str) -> Model:
    """The driver calls the coarse model, which calls two models in turn. The second of them calls a model that also
    gets the state."""
    model = Model("nested")
    model.component("driver", "driver", o_i="call", s="back")
    model.component("coarse", "coarse", f_init="call", o_i="first go state spare", s="then done", o_f="back")
    model.component("other", "other", f_init="start", o_f="end")
    model.component("fine", "fine", f_init="go", o_i="ask", s="answer", o_f="done")
    model.component("asked", "asked", f_init="ask state", o_f="answer")
    model.conduit("driver.call", "coarse.call")
    model.conduit("coarse.back", "driver.back")
    model.conduit("coarse.first", "other.start")
    model.conduit("other.end", "coarse.then")
    model.conduit("coarse.go", "fine.go")
    model.conduit("fine.done", "coarse.done")
    model.conduit("fine.ask", "asked.ask")
    model.conduit("asked.answer", "fine.answer")
    model.conduit("coarse.state", "asked.state", *filters)
    return model


def play(stage: Stage, model: Model, state: Role) -> list[int | None]:
    functions = {"driver": driver, "coarse": state, "other": other, "fine": fine, "asked": asked}
    got: list[int | None] = titin.run(model, functions, run_dir=stage.folder / "run").returned["asked"]
    return got


@pytest.mark.parametrize("filters", [("repeat",), ("repeat", "zstd"), ("scale(1)@sender", "repeat")])
def test_repeat_gives_the_message_of_the_step_again_and_again(stage: Stage, filters: tuple[str, ...]) -> None:
    got = play(stage, nested(*filters), coarse(0, 1, 2))
    assert got == [0, 0, 1, 1, 2, 2, 10, 10, 11, 11, 12, 12]


def test_pad_gives_it_once(stage: Stage) -> None:
    got = play(stage, nested("pad"), coarse(0, 1, 2))
    assert got == [0, None, 1, None, 2, None, 10, None, 11, None, 12, None]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("repeat", [0, 0, 0, 0, 2, 2, 10, 10, 10, 10, 12, 12]),
        ("pad", [0, None, None, None, 2, None, 10, None, None, None, 12, None]),
    ],
)
def test_a_step_may_be_left_out(stage: Stage, choice: str, expected: list[int | None]) -> None:
    assert play(stage, nested(choice), coarse(0, 2)) == expected


def test_there_may_be_nothing_to_repeat(stage: Stage) -> None:
    with pytest.raises(titin.CallOrderError, match=r"port 'state' has nothing to repeat.*before it went on"):
        play(stage, nested("repeat"), late_state)


def late_state(instance: titin.Instance) -> None:
    """The coarse model sends its state only in the second step, before it waits for the models that it called in the
    first step."""
    while instance.reuse():
        instance.receive("call")
        instance.send("go", timestamp=0.0)
        instance.send("go", timestamp=0.0)
        instance.send("state", 1, timestamp=0.0)
        instance.receive("done")


def reduced(*filters: str) -> Model:
    """The driver calls the coarse model. The coarse model's last state in each use goes to a model with as many
    uses."""
    model = Model("reduced")
    model.component("driver", "driver", o_i="call", s="back")
    model.component("coarse", "coarse", f_init="call", o_i="state", o_f="back")
    model.component("watcher", "watcher", f_init="state")
    model.conduit("driver.call", "coarse.call")
    model.conduit("coarse.back", "driver.back")
    model.conduit("coarse.state", "watcher.state", *filters)
    return model


@pytest.mark.parametrize("announces", [False, True], ids=["silent", "announced"])
@pytest.mark.parametrize("late", [False, True], ids=["early", "late"])
def test_last_gives_one_message_for_each_use(stage: Stage, late: bool, announces: bool) -> None:
    sent = threading.Event()

    def state(instance: titin.Instance) -> None:
        while instance.reuse():
            use = instance.receive("call").data
            for step in range(STEPS):
                following = step + 1.0 if announces and step + 1 < STEPS else None
                instance.send("state", 10 * use + step, timestamp=float(step), next_timestamp=following)
            instance.send("back", timestamp=0.0)
        sent.set()

    def watcher(instance: titin.Instance) -> list[int]:
        got = []
        while instance.reuse():
            got.append(instance.receive("state").data)
            if late:
                sent.wait()
        return got

    functions = {"driver": driver, "coarse": state, "watcher": watcher}
    assert titin.run(reduced("last"), functions, run_dir=stage.folder / "run").returned["watcher"] == [2, 12]


def test_the_last_message_is_there_as_soon_as_the_steps_are_over(stage: Stage) -> None:
    seen = threading.Event()

    def state(instance: titin.Instance) -> None:
        while instance.reuse():
            use = instance.receive("call").data
            instance.send("state", use, timestamp=0.0)
            instance.send("back", timestamp=0.0)
            # This use is not over yet, but the program sends no more in it.
            seen.wait()

    def watcher(instance: titin.Instance) -> None:
        while instance.reuse():
            instance.receive("state")
            seen.set()

    titin.run(reduced("last"), {"driver": driver, "coarse": state, "watcher": watcher}, run_dir=stage.folder / "run")


def test_what_comes_by_last_can_be_repeated(stage: Stage) -> None:
    model = Model("chained")
    model.component("coarse", "coarse", o_i="state")
    model.component("caller", "caller", o_i="ask", s="answer")
    model.component("asked", "asked", f_init="ask state", o_f="answer")
    model.conduit("caller.ask", "asked.ask")
    model.conduit("asked.answer", "caller.answer")
    model.conduit("coarse.state", "asked.state", "last", "repeat")

    def state(instance: titin.Instance) -> None:
        while instance.reuse():
            for step in range(STEPS):
                instance.send("state", step, timestamp=0.0)

    def caller(instance: titin.Instance) -> None:
        while instance.reuse():
            for _ in range(4):
                instance.send("ask", timestamp=0.0)
                instance.receive("answer")

    functions = {"coarse": state, "caller": caller, "asked": asked}
    assert titin.run(model, functions, run_dir=stage.folder / "run").returned["asked"] == [2, 2, 2, 2]


def test_what_pad_never_gives_is_counted_in_the_log(stage: Stage) -> None:
    def state(instance: titin.Instance) -> None:
        while instance.reuse():
            instance.receive("call")
            for step in range(STEPS):
                instance.send("state", step, timestamp=0.0)
                instance.send("go", timestamp=0.0)
                if step == STEPS - 1:
                    for _ in range(STEPS):
                        instance.receive("done")
            instance.send("back", timestamp=0.0)

    def patient(instance: titin.Instance) -> None:
        """The fine model asks only in the last of its uses."""
        use = 0
        while instance.reuse():
            instance.receive("go")
            use += 1
            if use == USES * STEPS:
                instance.send("ask", timestamp=0.0)
                instance.receive("answer")
            instance.send("done", timestamp=0.0)

    functions = {"driver": driver, "coarse": state, "other": other, "fine": patient, "asked": asked}
    run = titin.run(nested("pad"), functions, run_dir=stage.folder / "run")
    assert run.returned["asked"] == [STEPS - 1]
    missed = USES * STEPS - 1
    log = (run.directory / "titin_manager.log").read_text()
    assert f"{missed} messages from coarse.state on F_INIT port 'state' were not given" in log
