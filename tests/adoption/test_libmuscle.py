"""Beside its instances: libmuscle's runner, plugin of pytest and profiles, and the commands, next to MUSCLE3's."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ..conftest import TOOLS
from .systems import ORIGINALS, PROGRAMS, TITIN, WATCHDOG, System, description, outcome

SYSTEMS = [*ORIGINALS, TITIN]
NEWEST = ORIGINALS[-1]


def python(system: System, folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python with a system's libmuscle."""
    environment = system.environment | {"MPLBACKEND": "agg"} | environment
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=WATCHDOG
    )


RUNNER = f"""
import multiprocessing, sys
sys.path.insert(0, {str(PROGRAMS)!r})
import ymmsl
from ymmsl import v0_1, v0_2
from libmuscle.runner import run_simulation
from growth import macro, micro
from nested import core, helper, outer

def fails():
    raise ZeroDivisionError("divided by nothing")

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    model, what = sys.argv[2], sys.argv[3]
    version = {{"growth": v0_1.PartialConfiguration, "nested": v0_2.Configuration}}[model]
    configuration = ymmsl.load_as(version, open(f"{PROGRAMS}/{{model}}.ymmsl").read())
    functions = {{"macro": macro, "micro": micro, "core": core, "helper": helper, "outer": outer}}
    if what == "missing":
        del functions["micro"]
    if what == "fails":
        functions["micro"] = fails
    try:
        run_simulation(configuration, functions)
    except (RuntimeError, ValueError) as raised:
        print("raised", type(raised).__name__, "micro" in str(raised), "divided by nothing" in str(raised))
"""


@pytest.mark.parametrize(
    ("method", "model", "what"),
    [("fork", "growth", "all"), ("spawn", "growth", "all"), ("fork", "nested", "all")]
    + [("fork", "growth", "missing"), ("fork", "growth", "fails")],
)
def test_the_runner_runs_functions_as_muscle3_does(method, model, what, tmp_path):
    printed, logs, kept, sends = {}, {}, {}, {}
    for system in (NEWEST, TITIN):
        folder = tmp_path / system.name
        folder.mkdir()
        (folder / "runs.py").write_text(RUNNER)
        done = python(system, folder, "runs.py", method, model, what)
        assert done.returncode == 0, done.stderr
        # Instances write at once, so the lines of several come in any order.
        printed[system.name] = sorted(done.stdout.splitlines())
        logs[system.name] = sorted(file.name for file in folder.glob("muscle3.*.log"))
        kept[system.name] = [name for name in ("muscle3_manager.log", "performance.sqlite") if (folder / name).exists()]
        if kept[system.name]:
            sends[system.name] = sends_in(folder / "performance.sqlite")
    assert kept["titin"] == kept[NEWEST.name] and bool(kept["titin"]) == (what != "missing")
    if what == "all":
        assert sends["titin"] == sends[NEWEST.name] != []
    if what == "fails":
        # The log of an instance has its exception on titin, and MUSCLE3's has not.
        printed = {name: [line[:25] for line in lines if "raised" in line] for name, lines in printed.items()}
    assert printed["titin"] == printed[NEWEST.name] != []
    assert logs["titin"] == logs[NEWEST.name]


def sends_in(file: Path) -> list[tuple[str, int]]:
    """How often each instance has sent, by the profile of a run."""
    query = (
        "SELECT name, count(*) FROM events JOIN instances ON instances.oid = instance_oid"
        " WHERE event_type_oid = (SELECT oid FROM event_types WHERE name = 'SEND') GROUP BY name ORDER BY name"
    )
    with closing(sqlite3.connect(file)) as database:
        return database.execute(query).fetchall()


ENDED = f"""
import multiprocessing, os, signal, sys, tempfile
import ymmsl
from libmuscle import Instance, Message
from libmuscle.runner import run_simulation
from ymmsl import Operator, v0_1

def macro():
    instance = Instance({{Operator.O_I: ["state_out"], Operator.S: ["state_in"]}})
    while instance.reuse_instance():
        instance.send("state_out", Message(0.0))
        instance.receive("state_in")

def waits():
    instance = Instance({{Operator.F_INIT: ["initial"], Operator.O_F: ["final"]}})
    instance.reuse_instance()
    print(os.getpid(), flush=True)
    os.kill(os.getppid(), getattr(signal, sys.argv[2]))
    while True:
        signal.pause()

def no_instance():
    pass

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    tempfile.tempdir = os.getcwd()
    configuration = ymmsl.load_as(v0_1.PartialConfiguration, open("{PROGRAMS}/growth.ymmsl").read())
    try:
        run_simulation(configuration, {{"macro": macro, "micro": waits if sys.argv[2:] else no_instance}})
    except (RuntimeError, KeyboardInterrupt) as raised:
        print(type(raised).__name__, raised)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_no_process_outlives_a_runner_that_a_signal_has_ended(name, method, tmp_path):
    (tmp_path / "runs.py").write_text(ENDED)
    # The instances have the same standard output, so this waits for them too.
    done = python(TITIN, tmp_path, "runs.py", method, name)
    process, *more = done.stdout.splitlines()
    assert ends(int(process)), done.stderr
    assert more == (["KeyboardInterrupt "] if name == "SIGINT" else [])


def ends(process: int) -> bool:
    """Whether a process is gone soon: it closes its output a moment before."""
    limit = time.monotonic() + 30
    while alive(process):
        if time.monotonic() > limit:
            return False
        time.sleep(0.01)
    return True


def alive(process: int) -> bool:
    """Whether there is a process of this number that is not a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_function_that_makes_no_instance_is_named(tmp_path):
    (tmp_path / "runs.py").write_text(ENDED)
    done = python(TITIN, tmp_path, "runs.py", "fork")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("RuntimeError ")
    assert "the function of micro has ended without an Instance" in done.stdout


TESTED = """
import pytest
from libmuscle import Message

SOURCE = open("model.ymmsl").read()

def test_uses(muscle3_tester):
    tester = muscle3_tester.start_implementation(SOURCE, "solver", default_timeout=20)
    for use in range(2):
        tester.send("a", Message(float(use), None, use))
        tester.send("b", Message(float(use), None, [2.5]))
        for _ in range(2):
            message = tester.receive("ask")
            tester.send("answer", Message(message.timestamp, None, message.data * 2))
        assert tester.receive("final").data == [use, [2.5], 0, 2]

def test_a_file(muscle3_tester):
    from pathlib import Path
    tester = muscle3_tester.start_implementation(Path("model.ymmsl"), "source", default_timeout=20)
    assert tester.receive("out").data == 1.5

def test_nothing_comes(muscle3_tester):
    tester = muscle3_tester.start_implementation(SOURCE, "solver", default_timeout=20)
    with pytest.raises(RuntimeError):
        tester.receive("final", timeout=0.1)

def test_no_such_port(muscle3_tester):
    tester = muscle3_tester.start_implementation(SOURCE, "solver", default_timeout=20)
    with pytest.raises(ValueError, match="no port named 'none'. Available ports are: a, answer, ask, b, final"):
        tester.receive("none")

def test_no_such_implementation(muscle3_tester):
    with pytest.raises(ValueError, match="No implementation 'none' found"):
        muscle3_tester.start_implementation(SOURCE, "none")

def test_wrong(muscle3_tester):
    tester = muscle3_tester.start_implementation(SOURCE, "source", default_timeout=20)
    assert tester.receive("out").data == 2.5
"""

TESTEE = """
import sys
import time
from libmuscle import Instance, Message
from ymmsl import Operator

def solver():
    instance = Instance({
        Operator.F_INIT: ["a", "b"], Operator.O_I: ["ask"], Operator.S: ["answer"], Operator.O_F: ["final"]})
    while instance.reuse_instance():
        got = [instance.receive("a").data, instance.receive("b").data]
        for step in range(2):
            instance.send("ask", Message(step, None, step))
            got.append(instance.receive("answer").data)
        instance.send("final", Message(0.0, None, got))

def source():
    instance = Instance({Operator.O_F: ["out"]})
    while instance.reuse_instance():
        instance.send("out", Message(0.0, None, 1.5))

globals()[sys.argv[1]]()
"""


def test_the_plugin_of_pytest_tests_one_implementation(tmp_path):
    results = {}
    for system in (NEWEST, TITIN):
        folder = tmp_path / system.name
        folder.mkdir()
        (folder / "test_tested.py").write_text(TESTED)
        (folder / "testee.py").write_text(TESTEE)
        program = f"description: x, executable: {sys.executable}, args: {folder}/testee.py"
        (folder / "model.ymmsl").write_text(
            textwrap.dedent(f"""\
            ymmsl_version: v0.2
            programs:
              solver: {{ports: {{f_init: a b, o_i: ask, s: answer, o_f: final}}, {program} solver}}
              source: {{ports: {{o_f: out}}, {program} source}}
            """)
        )
        words = ["-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=no", f"--basetemp={folder}/base", "."]
        done = python(system, folder, *words)
        results[system.name] = sorted(
            line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("PASSED", "FAILED", "ERROR"))
        )
        assert results[system.name], done.stdout + done.stderr
    assert [line for line in results["titin"] if not line.startswith("PASSED")] == ["FAILED test_tested.py::test_wrong"]
    # The tests of mistakes end with an error of MUSCLE3's own, which looks for a log that is not there.
    assert {line for line in results[NEWEST.name] if not line.startswith("ERROR")} <= set(results["titin"])


ENDLESS = f"""
from libmuscle import Message

def test_endless(muscle3_tester):
    source = "ymmsl_version: v0.2\\nprograms:\\n  endless: {{description: x, ports: {{f_init: a}}, "
    source += "executable: {sys.executable}, args: FOLDER/endless.py}}"
    tester = muscle3_tester.start_implementation(source, "endless", default_timeout=2)
    tester.send("a", Message(0.0))
"""


def test_the_plugin_ends_an_implementation_that_does_not_end(tmp_path):
    (tmp_path / "test_endless.py").write_text(ENDLESS.replace("FOLDER", str(tmp_path)))
    (tmp_path / "endless.py").write_text(
        "import signal\nfrom libmuscle import Instance\nInstance().reuse_instance()\nsignal.pause()\n"
    )
    done = python(TITIN, tmp_path, "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={tmp_path}/base", ".")
    assert done.returncode == 1
    assert "The implementation had not ended 2 s after the test" in done.stdout, done.stdout


ASKS = """
import json, sys, warnings
warnings.simplefilter("ignore")
from libmuscle import ProfileDatabase

with ProfileDatabase(sys.argv[1]) as database:
    names, *times = database.instance_stats()
    print(json.dumps(sorted(zip(names, *times))))
    print(json.dumps(database.resource_stats(), sort_keys=True))
    for question in (
        {"etype": "SEND"},
        {"etype": "SEND", "instance": "macro", "port": "state_out", "aggregate": "sum"},
        {"etype": "RECEIVE", "time": "stop", "port": "initial", "etype2": "SEND", "port2": "final", "time2": "start"},
        {"etype": "RECEIVE_WAIT", "instance": "micro", "aggregate": "sum"},
        {"etype": "SEND", "slot": 3, "aggregate": "sum"},
        {"etype": "SEND", "slot": 3},
        {"etype": "SEND", "etype2": "REGISTER"},
        {"etype": "SEND", "time": "middle"},
        {"etype": "SEND", "aggregate": "most"},
    ):
        try:
            print(database.time_taken(**question))
        except (RuntimeError, ValueError) as raised:
            print(type(raised).__name__, str(raised)[:20])
"""


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A profile of the same model by MUSCLE3 and by titin."""
    folder = tmp_path_factory.mktemp("profiles")
    path = description("growth", folder)
    for system in (NEWEST, TITIN):
        end = outcome(system.start(path, folder / system.name), folder / system.name)
        assert end.code == 0, end.output
    return {system.name: folder / system.name / "performance.sqlite" for system in (NEWEST, TITIN)}


@pytest.mark.parametrize("of", [NEWEST.name, "titin"])
def test_a_profile_is_read_as_muscle3_reads_it(profiles, of, tmp_path):
    theirs, ours = (python(system, tmp_path, "-c", ASKS, str(profiles[of])) for system in (NEWEST, TITIN))
    assert (ours.returncode, theirs.returncode) == (0, 0), ours.stderr + theirs.stderr
    for our, their in zip(ours.stdout.splitlines(), theirs.stdout.splitlines(), strict=True):
        assert our == their or json.loads(our) == pytest.approx(json.loads(their), rel=1e-9), (our, their)


def test_profiles_are_drawn_or_printed(profiles, tmp_path):
    drawn = python(TITIN, tmp_path, "-m", "muscle3.commands", "profile", "-i", "-r", "-t", str(profiles["titin"]))
    assert (drawn.returncode, drawn.stderr) == (0, "")
    (tmp_path / "matplotlib.py").write_text("raise ImportError('No module named matplotlib')")
    printed = python(TITIN, tmp_path, "-m", "muscle3.commands", "profile", "-i", str(profiles["titin"]))
    assert printed.returncode == 0 and "macro" in printed.stdout and "matplotlib" in printed.stderr
    (tmp_path / "matplotlib.py").unlink()
    timeline = ["-m", "muscle3.commands", "profile", "-t", str(profiles["titin"])]
    hidden = python(TITIN, tmp_path, *timeline, MPLBACKEND="", DISPLAY="", WAYLAND_DISPLAY="")
    assert hidden.returncode == 0 and "macro" in hidden.stdout
    assert "no display" in hidden.stderr and "titin profile" in hidden.stderr and "--plot" in hidden.stderr
    (tmp_path / "text").write_text("no database")
    wrong = python(TITIN, tmp_path, "-m", "muscle3.commands", "profile", "-i", "text")
    assert wrong.returncode == 2 and "text is no profile" in wrong.stderr
    nothing = python(TITIN, tmp_path, "-m", "muscle3.commands", "profile", str(profiles["titin"]))
    assert nothing.returncode == 1 and "-i, -r or -t" in nothing.stdout


def test_as_many_nodes_as_muscle3_counts(tmp_path):
    path = description("growth", tmp_path)
    text = path.read_text().replace("implementation: micro", "implementation: micro\n      multiplicity: 5")
    path.write_text(f"{text}resources: {{macro: {{threads: 2}}, micro: {{threads: 2}}}}\n")
    words = ["resources", "-c", "4", str(path)]
    theirs = python(NEWEST, tmp_path, "-W", "ignore", "-m", "muscle3.muscle3", *words)
    ours = subprocess.run([TOOLS / "muscle3", *words], capture_output=True, text=True)
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout) == (0, "3")


def test_a_manager_serves_programs_that_the_user_starts(tmp_path):
    path = description("growth", tmp_path)
    location = tmp_path / "location"
    manager = subprocess.Popen(
        [TOOLS / "muscle_manager", "--location-file", location, "--run-dir", tmp_path / "run", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=TITIN.environment,
    )
    assert manager.stderr is not None and manager.stdout is not None
    for line in manager.stderr:
        if line.startswith("# micro"):
            break
    programs = [
        subprocess.Popen(
            [sys.executable, PROGRAMS / "growth.py", name, f"--muscle-instance={name}"]
            + [f"--muscle-log-file={tmp_path}"] * (name == "macro"),
            # What the command line says goes before the environment.
            env=TITIN.environment | {"MUSCLE_INSTANCE": "none", "MUSCLE_MANAGER": location.read_text()},
            stdout=subprocess.DEVNULL,
        )
        for name in ("macro", "micro")
    ]
    assert [program.wait(WATCHDOG) for program in programs] == [0, 0]
    output, _ = manager.communicate(timeout=WATCHDOG)
    assert manager.returncode == 0 and output.startswith("Simulation completed successfully.\n")
    assert (tmp_path / "muscle3.macro.log").exists()
    log = tmp_path / "run/muscle3_manager.log"
    assert log.read_text() == (tmp_path / "run/titin_manager.log").read_text()


def test_the_location_is_printed_where_no_file_is_named(tmp_path):
    command = [TOOLS / "muscle_manager", "--run-dir", tmp_path / "run", description("growth", tmp_path)]
    manager = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert manager.stdout is not None
    assert manager.stdout.readline() == f"{tmp_path}/run/connection.json\n"
    manager.terminate()
    output, _ = manager.communicate(timeout=WATCHDOG)
    assert manager.returncode == 1 and "the user ended the run" in output


def test_a_run_goes_on_when_nobody_reads_what_the_manager_says(tmp_path):
    command = [TOOLS / "muscle_manager", "--start-all", "--run-dir", tmp_path / "run", description("growth", tmp_path)]
    manager = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=TITIN.environment)
    assert manager.stderr is not None
    manager.stderr.readline()
    manager.stderr.close()
    assert manager.wait(WATCHDOG) == 0
    assert "done" in (tmp_path / "run/muscle3_manager.log").read_text()


@pytest.mark.parametrize("options", [[], ["--start-all"]])
def test_a_manager_that_is_killed_takes_its_run_with_it(options, tmp_path):
    path = tmp_path / "sleeps.ymmsl"
    path.write_text(
        "ymmsl_version: v0.1\nmodel: {name: sleeps, components: {one: {ports: {}, implementation: sleep}}}\n"
        "implementations: {sleep: {executable: sleep, args: '1000'}}\n"
    )
    command = [TOOLS / "muscle_manager", *options, "--run-dir", tmp_path / "run", path]
    manager = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=TITIN.environment)
    connection = tmp_path / "run/connection.json"
    until(connection.exists)
    [child] = Path(f"/proc/{manager.pid}/task/{manager.pid}/children").read_text().split()
    manager.kill()
    manager.wait()
    assert ends(int(child))
    assert "the user ended the run (SIGTERM)" in (tmp_path / "run/titin_manager.log").read_text()
    assert not connection.exists()


def until(is_so: Callable[[], bool]) -> None:
    limit = time.monotonic() + WATCHDOG
    while not is_so():
        assert time.monotonic() < limit
        time.sleep(0.01)


#: A command in the place of titin's, which sends a signal to its parent first, and ends of that once it is passed on.
SIGNALLED = """
import os, signal, sys
from muscle3 import command

if sys.argv[1:] == ["parent"]:
    command.titin = lambda: sys.executable
    print(command.Child([__file__, "child"]).wait())
else:
    os.kill(os.getppid(), signal.SIGTERM)
    signal.pause()
"""


def test_a_signal_as_soon_as_the_child_is_there_goes_on_to_it(tmp_path):
    (tmp_path / "signalled.py").write_text(SIGNALLED)
    done = python(TITIN, tmp_path, "signalled.py", "parent")
    assert (done.returncode, done.stdout) == (0, "143\n"), done.stderr


LOGS = """
import logging, sys
from libmuscle import Instance

instance = Instance({})
while instance.reuse_instance():
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logging.getLogger("mine").log(level, "said %s", logging.getLevelName(level))
    print(logging.getLogger("libmuscle").level, logging.getLogger("ymmsl").level, logging.getLogger().level)
"""


@pytest.mark.parametrize("settings", ["", "muscle_remote_log_level: INFO", "muscle_remote_log_level: ERROR"])
@pytest.mark.parametrize("local", ["", "muscle_local_log_level: DEBUG", "muscle_local_log_level: none_such"])
def test_logging_reaches_the_log_of_the_run_at_the_level_that_is_set(settings, local, tmp_path):
    (tmp_path / "logs.py").write_text(LOGS)
    path = tmp_path / "logs.ymmsl"
    path.write_text(
        f"ymmsl_version: v0.1\nmodel: {{name: logs, components: {{solo: {{implementation: solo, ports: {{}}}}}}}}\n"
        f"settings: {{{', '.join(filter(None, [settings, local]))}}}\n"
        f"implementations: {{solo: {{executable: {sys.executable}, args: {tmp_path}/logs.py}}}}\n"
    )
    said = {}
    for system in (NEWEST, TITIN):
        end = outcome(system.start(path, tmp_path / system.name), tmp_path / system.name)
        assert end.code == 0, end.output
        log = (tmp_path / system.name / "muscle3_manager.log").read_text()
        levels = [level for level in ("DEBUG", "INFO", "WARNING", "ERROR") if f"said {level}" in log]
        printed = (tmp_path / system.name / "instances/solo/stdout.txt").read_text()
        said[system.name] = (levels, printed)
        # Titin keeps a warning back where the level is ERROR; MUSCLE3 has that level only after its own first warning.
        assert ("none_such" in log) == ("none_such" in local) or "ERROR" in settings
    assert said["titin"] == said[NEWEST.name]


def test_the_import_takes_no_module_that_few_programs_need():
    lazy = ["ymmsl", "numpy", "yaml", "sqlite3", "multiprocessing", "subprocess", "logging", "importlib.metadata"]
    code = f"import sys, libmuscle; print([name for name in {lazy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], env=TITIN.environment, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_both_in_one_environment_are_refused(tmp_path):
    (tmp_path / "muscle3-0.11.0.dist-info").mkdir()
    code = "import libmuscle"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "ImportError: titin-muscle3 and muscle3 (0.11.0) are in one environment" in done.stderr
    assert str(tmp_path) in done.stderr and "pip uninstall" in done.stderr
