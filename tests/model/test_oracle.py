"""titin's verdict about a description against that of the ``ymmsl`` package, over the corpus.

Both accept ``corpus/good``, and both refuse ``corpus/bad``. For ``corpus/differ`` the verdicts are opposite; each
difference is listed in ``differences.toml`` and explained in ``docs/description.md``. Comments in each file give
titin's exact problems and their lines, which ``crates/model/tests/corpus.rs`` checks.
"""

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ymmsl = pytest.importorskip("ymmsl", reason="the oracle, a package for tests only: pip install ymmsl==0.18.0")

from ..conftest import example as example_program  # noqa: E402
from .oracle import configuration, timelines, verdict  # noqa: E402

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CORPUS = HERE / "corpus"
WATCHDOG = 300  # seconds; only a hang takes so long

with open(HERE / "differences.toml", "rb") as file:
    DIFFERENCES = tomllib.load(file)


def cases(*folders: str) -> list[Path]:
    return sorted(case for folder in folders for case in (CORPUS / folder).iterdir())


def files_of(case: Path) -> list[Path]:
    return sorted(case.iterdir()) if case.is_dir() else [case]


@pytest.fixture(scope="session")
def example() -> list[str]:
    """The example program of crates/model, which checks descriptions, writes them, and shows timelines."""
    return [example_program("check")]


@pytest.fixture(scope="session")
def check(request) -> list[str]:
    """The command that checks files and prints a report as JSON: ``titin check`` where there is one."""
    titin = os.environ.get("TITIN") or shutil.which("titin")
    return [titin, "check", "--json"] if titin else request.getfixturevalue("example")


def run(command: list[str], files: list[Path]) -> subprocess.CompletedProcess:
    search = {"YMMSL_PATH": str(CORPUS / "path"), "PYTHONPATH": str(CORPUS / "site")}
    return subprocess.run(command + files, capture_output=True, text=True, timeout=WATCHDOG, env=os.environ | search)


def titin_accepts(check: list[str], files: list[Path]) -> bool:
    done = run(check, files)
    assert done.returncode in (0, 2), done.stderr
    errors = [p for p in json.loads(done.stdout)["problems"] if p["severity"] == "error"]
    assert bool(errors) == (done.returncode == 2)
    return not errors


def oracle_accepts(files: list[Path]) -> bool:
    return verdict(files, CORPUS / "path", CORPUS / "site") is None


@pytest.mark.parametrize("case", cases("good", "bad"), ids=lambda case: f"{case.parent.name}/{case.stem}")
def test_titin_and_ymmsl_agree(check, case):
    wanted = case.parent.name == "good"
    assert oracle_accepts(files_of(case)) is wanted
    assert titin_accepts(check, files_of(case)) is wanted


@pytest.mark.parametrize("case", cases("differ"), ids=lambda case: case.stem)
def test_differences_are_as_intended(check, case):
    wanted = DIFFERENCES[case.stem]["titin"] == "accepts"
    assert oracle_accepts(files_of(case)) is not wanted
    assert titin_accepts(check, files_of(case)) is wanted


def test_every_difference_has_a_case_and_is_told_in_the_docs():
    assert set(DIFFERENCES) == {case.stem for case in cases("differ")}
    docs = " ".join((ROOT / "docs" / "description.md").read_text().split())
    assert [name for name, entry in DIFFERENCES.items() if entry["words"] not in docs] == []


def test_the_corpus_is_large_enough():
    assert len(cases("good", "bad", "differ")) >= 60


def outline(configuration) -> dict:
    """The contents of a configuration, in plain types."""
    ports = lambda ports: {str(p.name): (p.operator.name, str(p.timeline)) for p in ports.values()}
    models = {}
    for name, model in configuration.models.items():
        components = {
            str(c.name): (ports(c.ports), str(c.implementation), c.multiplicity, c.optional)
            for c in model.components.values()
        }
        conduits = sorted((str(c.sender), [f.value for f in c.filters], str(c.receiver)) for c in model.conduits)
        models[str(name)] = (ports(model.ports), components, conduits)
    programs = {}
    for name, program in configuration.programs.items():
        keys = ("executable", "args", "script", "modules", "virtual_env", "can_share_resources")
        plain = {key: getattr(program, key) or None for key in keys}
        enums = (program.base_env.name, program.execution_model.name, program.keeps_state_for_next_use.name)
        supported = {str(s): setting.typ.value for s, setting in program.supported_settings or []}
        programs[str(name)] = (plain, enums, dict(program.env), ports(program.ports), supported)
    resources = {str(name): vars(need) for name, need in configuration.resources.items()}
    settings = {str(name): value for name, value in configuration.settings.items()}
    saves = configuration.checkpoints
    checkpoints = (saves.at_end, [vars(r) for r in saves.simulation_time], [vars(r) for r in saves.wallclock_time])
    return {
        "models": models,
        "programs": programs,
        "resources": resources,
        "settings": settings,
        "checkpoints": checkpoints,
    }


@pytest.mark.parametrize("case", cases("good"), ids=lambda case: case.stem)
def test_what_titin_writes_says_the_same_to_ymmsl(example, case, tmp_path):
    """The files merged, converted from v0.1 to v0.2, and with imports taken in."""
    written = tmp_path / "written.ymmsl"
    done = run([*example, "--write"], files_of(case))
    assert done.returncode == 0, done.stdout
    if "ports:" not in done.stdout:
        return  # not known before the run, so not written; the package asks for them
    written.write_text(done.stdout)
    assert verdict([written], CORPUS / "path", CORPUS / "site") is None
    if "imports:" in "".join(file.read_text() for file in files_of(case)):
        return  # the package resolves imports only during the start of a run, and under other names
    assert outline(configuration([written])) == outline(configuration(files_of(case)))


@pytest.mark.parametrize("case", cases("good"), ids=lambda case: case.stem)
def test_timelines_are_those_of_ymmsl(example, case):
    done = run([*example, "--timelines"], files_of(case))
    theirs = timelines(files_of(case), CORPUS / "path", CORPUS / "site")
    if theirs is None:
        return  # a nested model; the package knows timelines within each model only
    ours = json.loads(done.stdout)
    assert {name: theirs[name] for name in ours} == ours
