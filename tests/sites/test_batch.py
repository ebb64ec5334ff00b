"""Runs as batch jobs by PSI/J: Slurm for real, a local job, and the scripts for other systems."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psij
import pytest
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from titin import batch

from ..conftest import TITIN, needs
from ..mpi.conftest import HERE as MPI
from ..relays.conftest import wait_until
from .conftest import chain, printed

CLUSTER = MPI / "cluster.sh"

#: Stand-ins for Python packages that cannot be installed without the system that they are for.
STUBS = Path(__file__).parent / "stubs"


def submit(folder: Path, *arguments: str, around: tuple[Path | str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Submits the model in this folder, and waits."""
    command = [*around, TITIN, "run", "model.ymmsl", "--run-dir", "run", "--wait", *arguments]
    # PSI/J keeps its own files in the home directory.
    env = {**os.environ, "UNALLOCATED": "1", "HOME": str(folder)}
    return subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.usefixtures("namespaces")
def test_a_job_of_slurm_uses_all_of_its_nodes(tmp_path: Path) -> None:
    needs("slurmctld", "munged")
    cores = len(os.sched_getaffinity(0))
    chain(tmp_path, ["a", "b"], "")
    text = (tmp_path / "model.ymmsl").read_text()
    resources = f"resources: {{chain.a: {{threads: {cores}}}, chain.b: {{threads: {cores}}}}}\n"
    (tmp_path / "model.ymmsl").write_text(text + resources)
    # A job of two nodes, because each program needs a whole one.
    arguments = ["--submit", "slurm", "--time", "10 min", "--cores-per-node", str(cores), "--queue", "all"]
    done = submit(tmp_path, *arguments, around=(CLUSTER,))
    assert done.returncode == 0, done.stdout
    assert re.search(r"submitted to slurm as job \d+; its output goes to chain-job.txt", done.stdout)
    assert "host n2 is ready" in done.stdout
    assert "chain: done in" in done.stdout
    assert printed(tmp_path, "a", "b") == ["n1 0", "n2 1"]


@pytest.mark.usefixtures("namespaces")
def test_a_failed_run_fails_its_job(tmp_path: Path) -> None:
    needs("slurmctld", "munged")
    chain(tmp_path, ["a", "b"], "")
    (tmp_path / "stage.py").write_text("raise SystemExit(3)\n")
    done = submit(tmp_path, "--submit", "slurm", "--time", "10 min", around=(CLUSTER,))
    assert done.returncode == 1, done.stdout
    assert "ended with exit code 3 before it had joined the run" in done.stdout


#: Waits until a job runs, ends it, and looks for what is left on both nodes.
CANCEL = """\
titin run model.ymmsl --run-dir run --submit slurm --time "10 min" --nodes 2 --wait >said 2>&1 &
for _ in $(seq 300); do [ ! -e run/instances/b/workdir/running ] || break; sleep 0.1; done
$1 $!
wait $!; code=$?
cat said
left=$(pgrep -fa '[t]itin (run|agent|guard)|stage[.]py'
	for node in $(pgrep -x slurmd); do ls -d /proc/$node/root/dev/shm/titin-* 2>/dev/null; done)
echo "left behind: ${left:-nothing}"
exit $code
"""


def that_waits(folder: Path) -> None:
    """Has the program at the end of the chain make a file, and wait."""
    stage = folder / "stage.py"
    text = stage.read_text().replace(
        "if sends:", "open('running', 'w').close(); sends or time.sleep(99)\n        if sends:", 1
    )
    stage.write_text("import time\n" + text)


@pytest.mark.parametrize(("command", "code"), [("kill -TERM", 130), ("scancel --name=chain; true", 1)])
@pytest.mark.usefixtures("namespaces")
def test_a_cancelled_job_leaves_nothing(tmp_path: Path, command: str, code: int) -> None:
    needs("slurmctld", "munged")
    chain(tmp_path, ["a", "b"], "")
    that_waits(tmp_path)
    (tmp_path / "cancel.sh").write_text(CANCEL.replace("$1", command))
    env = {**os.environ, "UNALLOCATED": "1", "HOME": str(tmp_path)}
    done = subprocess.run(
        [CLUSTER, "bash", "cancel.sh"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stdout
    # Slurm sends the signal to all processes at once, so a program may be seen to end first.
    assert re.search(r"First:    (the user ended the run \(SIGTERM|b was ended by SIGTERM)", done.stdout), done.stdout
    assert done.stdout.endswith("left behind: nothing\n"), done.stdout


def test_a_local_job_ends_with_the_exit_code_of_the_run(tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b"], "")
    done = submit(tmp_path, "--submit", "local", "--time", "10 min")
    assert done.returncode == 0, done.stdout
    assert "chain: done in" in done.stdout
    assert len(printed(tmp_path, "a", "b")) == 2


def test_a_job_that_stays_in_the_queue_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Waiting(psij.Job):
        """A job that begins and ends at the third look."""

        looks = 0

        def wait(self, *_: object) -> psij.JobStatus | None:
            self.looks += 1
            return psij.JobStatus(psij.JobState.COMPLETED, exit_code=0) if self.looks > 2 else None

    job = Waiting()
    job._native_id = "7"
    job.status = psij.JobStatus(psij.JobState.QUEUED)
    executor = psij.JobExecutor.get_instance("slurm")
    options = argparse.Namespace(system="slurm", token=None, output=tmp_path / "output", command=["titin"])
    for notice, said in (1e9, ""), (0, "job 7 of slurm is queued\n"):
        job.looks = 0
        monkeypatch.setattr(batch, "QUEUE_NOTICE", notice)
        assert batch.follow(job, executor, options, []) == 0
        assert capfd.readouterr().out == said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_local_job_ends_in_order_by_a_signal(tmp_path: Path, number: int) -> None:
    chain(tmp_path, ["a", "b"], "")
    that_waits(tmp_path)
    command = [TITIN, "run", "model.ymmsl", "--run-dir", "run", "--submit", "local", "--time", "10 min", "--wait"]
    env = {**os.environ, "HOME": str(tmp_path)}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as waiting:
        wait_until(lambda: (tmp_path / "run/instances/b/workdir/running").exists(), "b does not run")
        waiting.send_signal(number)
        said, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 130, said
    assert "First:    the user ended the run (SIGTERM)" in said, said
    assert not (tmp_path / "run/connection.json").exists()
    assert "The run of chain was ended after" in (tmp_path / "run/titin_manager.log").read_text()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--submit", "slurm"], "--time <TIME>"),
        (["--submit", "local", "--time", "soon"], "soon"),
        (["--submit", "lsd", "--time", "1 h"], "PSI/J knows no batch system 'lsd'; it knows"),
        (["--submit", "flux", "--time", "1 h"], "PSI/J cannot load its executor for flux: No module named 'flux'"),
        (["--submit", "local", "--time", "1 h", "--by-hand", "a"], "cannot be used with"),
    ],
)
def test_a_bad_choice_submits_nothing(tmp_path: Path, arguments: list[str], text: str) -> None:
    chain(tmp_path, ["a", "b"], "")
    done = submit(tmp_path, *arguments)
    assert done.returncode == 2, done.stdout
    assert text in done.stdout, done.stdout
    assert not (tmp_path / "run").exists()


def submit_to_flux(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Submits a job of Flux by the module, with the stand-in for the Python package of Flux, and waits."""
    return subprocess.run(
        [sys.executable, "-m", "titin.batch", "flux", "--name", "m", "--output", "out", "--wait", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(STUBS), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "code"), [("pwd; pwd >&2", 0), ("pwd; pwd >&2; exit 3", 3), ("pwd; pwd >&2; kill -9 $$", 137)]
)
def test_a_job_of_flux_ends_with_the_exit_code_of_its_command(tmp_path: Path, script: str, code: int) -> None:
    done = submit_to_flux(tmp_path, "--cores", "3", "--seconds", "90", "--", "sh", "-c", script)
    first = "submitted to flux as job 4711; its output goes to out"
    assert done.stdout.splitlines() == [first, str(tmp_path), str(tmp_path)]
    assert done.returncode == code
    job = json.loads((tmp_path / "flux-job.json").read_text())
    assert (job["tasks"], job["cores"], job["duration"]) == ("1", "3", "90.0")


def test_a_run_may_be_a_job_of_flux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(tmp_path, ["a", "b"], "")
    monkeypatch.setenv("PYTHONPATH", str(STUBS))
    done = submit(tmp_path, "--submit", "flux", "--time", "10 min")
    assert done.returncode == 0, done.stdout
    assert len(printed(tmp_path, "a", "b")) == 2


@pytest.mark.parametrize(
    ("arguments", "env", "why"),
    [
        (["--nodes", "2"], {}, "on each node of a job of Flux: ask for one node"),
        (["--queue", "q", "--option", "a=b"], {}, "PSI/J does not hand on to Flux: queue, batch option."),
        ([], {"FLUX_STUB_REFUSES": "1"}, "the queue is closed"),
    ],
)
def test_a_job_that_flux_does_not_take_is_told(
    tmp_path: Path, arguments: list[str], env: dict[str, str], why: str
) -> None:
    done = submit_to_flux(tmp_path, *arguments, "--", "true", **env)
    assert done.returncode == 2
    assert done.stdout.startswith("error: the job was not submitted on ") and why in done.stdout, done.stdout


def test_a_signal_cancels_a_job_of_flux(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(STUBS)}
    command = [sys.executable, "-m", "titin.batch", "flux", "--name", "m", "--output", "out", "--wait", "--"]
    with subprocess.Popen([*command, "sh", "-c", "echo here; exec sleep 60"], cwd=tmp_path, env=env) as process:
        wait_until(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text(), "the job does not begin")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 130


@pytest.mark.parametrize("kind", [["--output", "out"], ["--token"]])
def test_without_psij_the_user_is_told_what_to_install(
    kind: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "psij", None)
    assert batch.main(["slurm", "--name", "m", *kind, "--", "titin"]) == 2
    place = f"in the Python of titin on {os.uname().nodename}"
    assert capsys.readouterr().err == f"error: --submit needs PSI/J {place}: pip install 'titin[batch]'\n"


#: Commands of Slurm that know one job, which is queued until it is cancelled. Each look at the queue is noted.
QUEUE = {
    "sbatch": "echo Submitted batch job 7",
    "squeue": "[ -e cancelled ] && state=CA || { state=PD; echo >>looks; }; echo JOBID ST REASON; echo 7 $state None",
    "scancel": "touch cancelled",
}

#: Follows a job, and looks at the queue each second, but each three seconds from the second second on.
PATIENT = """
import sys
from titin import batch
batch.QUEUE_INTERVAL, batch.LATER_QUEUE_INTERVAL, batch.LATER = 1, 3, 1
sys.exit(batch.main(["slurm", "--name", "m", "--output", "out", "--wait", "--", "true"]))
"""


def test_the_queue_is_looked_at_less_often_later(tmp_path: Path) -> None:
    for name, text in QUEUE.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", PATIENT], cwd=tmp_path, env=env) as process:
        # PSI/J itself waits for two seconds before the first look.
        time.sleep(6)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 130
    assert 1 <= len((tmp_path / "looks").read_text()) <= 2


#: For each batch system, what its script must have for 3 nodes of 16 cores, 90 minutes, queue q and account acct.
SCRIPTS = {
    "slurm": [
        '--job-name="m"',
        "--nodes=3",
        "--ntasks-per-node=16",
        "--time=1:30:0\n",
        '--partition="q"',
        '--account="acct"',
    ],
    "pbs": ['-N "m"', "-l select=3:ncpus=16:mpiprocs=16", "-l walltime=1:30:0\n", "-q q", "-A acct"],
    "lsf": ['-J "?m', "-nnodes 3\n", "-n 48\n", "-W 1:30\n|-W 90\n", "-q .?q", "-[GP] .?acct"],
}


def script_of(options: argparse.Namespace, folder: Path) -> Path:
    """Writes the script that PSI/J would submit."""
    executor = batch.executor_of(options.system)
    assert isinstance(executor, BatchSchedulerExecutor)
    job = psij.Job(batch.specification(options))
    script = folder / "script"
    with script.open("w") as stream:
        executor.generate_submit_script(job, executor._create_script_context(job), stream)
    return script


@pytest.mark.parametrize("system", SCRIPTS)
def test_the_script_of_each_batch_system_asks_for_the_same(tmp_path: Path, system: str) -> None:
    options = batch.parse(
        [system, "--name", "m", "--output", str(tmp_path / "out"), "--nodes", "3", "--cores", "16", "--seconds", "5400"]
        + ["--queue", "q", "--account", "acct", "--", "titin", "run", "m.ymmsl"]
    )
    text = script_of(options, tmp_path).read_text()
    for pattern in SCRIPTS[system]:
        assert re.search(pattern, text), f"no {pattern} in\n{text}"
    assert "titin" in text and "m.ymmsl" in text


@pytest.mark.parametrize("system", SCRIPTS)
def test_the_script_of_each_batch_system_hands_the_token_to_an_agent(tmp_path: Path, system: str) -> None:
    """Without its batch system the script finds no files of that system, and goes on."""
    tells = 'read -r token; echo "$token, $1, $2"; echo and errors >&2'
    options = batch.parse([system, "--name", "far", "--token", "--", "sh", "-c", tells, "sh", "a b", "c'd"])
    options.output = tmp_path / "output.txt"
    token = tmp_path / "token"
    token.write_text("a1b2\n")
    script = script_of(options, tmp_path)
    assert "a1b2" not in script.read_text()
    subprocess.run(["bash", script], capture_output=True, check=False)
    assert options.output.read_text() == "a1b2, a b, c'd\nand errors\n"
    assert not token.exists()
