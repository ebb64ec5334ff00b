"""Agents that come by batch jobs, which the run submits: local jobs here and by ssh, and jobs of Slurm."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import TITIN, WATCHDOG
from .conftest import Hosts, chain, printed
from .test_slurm import Cluster, cluster

__all__ = ["cluster"]

#: What each token begins with, but for its first digits: the key ``number`` of a map in MessagePack.
TOKEN = b"\xa6number\xcf".hex()


def pair(folder: Path, job: str, more: str = "") -> None:
    """Writes a model of two components. The agent of the second comes by a job."""
    hosts = f"localhost: {{components: [a]}}, far: {{start: {{{job}}}, components: [b]}}"
    chain(folder, ["a", "b"], f"hosts: {{{hosts}}}\n{more}")


def run(folder: Path) -> tuple[int, str]:
    """Runs the model in the folder, which is the home directory too. PSI/J keeps its own files there."""
    done = subprocess.run(
        [TITIN, "run", "model.ymmsl", "--run-dir", "run"],
        cwd=folder,
        env=os.environ | {"HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=WATCHDOG,
    )
    return done.returncode, done.stdout


def files_with_token(folder: Path) -> list[Path]:
    """The files below the folder that have a token."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if TOKEN.encode() in file.read_bytes()]


def test_a_local_job_starts_the_agent_and_leaves_nothing(tmp_path: Path) -> None:
    pair(tmp_path, "batch: local, time: 10 min, cores_per_node: 1, options: {constraint: gpu}")
    code, said = run(tmp_path)
    assert code == 0, said
    here = os.uname().nodename
    assert printed(tmp_path, "a", "b") == [f"{here} 0", f"{here} 1"]
    assert "is active" in (tmp_path / "run/agents/far.txt").read_text()
    assert list((tmp_path / ".psij/work/titin").iterdir()) == []
    assert files_with_token(tmp_path) == []


def test_a_job_is_submitted_on_another_host(hosts: Hosts, tmp_path: Path) -> None:
    pair(tmp_path, "batch: local, time: 10 min, via: [ssh, n2]")
    (tmp_path / "run").mkdir()
    done = hosts(2, HIDDEN=str(tmp_path / "run"))
    assert done.returncode == 0, done.stdout
    assert printed(tmp_path, "a", "b") == ["n1 0", "n2 1"]
    assert "the token of host far has served an agent on n2" in (tmp_path / "run/titin_manager.log").read_text()
    assert files_with_token(tmp_path) == []


def test_a_job_that_fails_at_once_ends_the_run_with_its_output(hosts: Hosts, tmp_path: Path) -> None:
    pair(tmp_path, "batch: local, time: 10 min, via: [ssh, n2]")
    # The agent cannot begin.
    script = f"ssh n2 mount -o remount,ro /dev/shm; exec {TITIN} run model.ymmsl --run-dir run"
    done = hosts(2, "sh", "-c", script)
    assert done.returncode == 1, done.stdout
    said = " ".join(done.stdout.split())
    assert "the agent of host far could not be started: cannot make a folder in /dev/shm" in said, said
    assert "ssh n2 sh ended with exit code 2" in said, said
    assert "The job was not submitted, or the job has failed, or its agent: the text says why" in said, said
    assert "start an agent on each of these hosts" not in said, said


@pytest.mark.parametrize(
    ("job", "texts"),
    [
        ("batch: lsd, time: 1 h", ["PSI/J knows no batch system 'lsd'; it knows", "local"]),
        (
            "batch: pbs, time: 1 h",
            [
                f"the job was not submitted on {os.uname().nodename}: there is no command qsub",
                "name the way to such a host as `via`",
            ],
        ),
        ("batch: local, time: 1 h, via: [/no/such/ssh]", ["/no/such/ssh"]),
    ],
)
def test_a_job_that_cannot_be_submitted_ends_the_run(tmp_path: Path, job: str, texts: list[str]) -> None:
    pair(tmp_path, job)
    code, said = run(tmp_path)
    assert code == 1, said
    for text in texts:
        assert text in " ".join(said.split()), said
    assert files_with_token(tmp_path) == []


def test_a_run_that_waits_in_vain_says_how_to_wait_longer(tmp_path: Path) -> None:
    # What stands for the way to the other host comes to nothing.
    pair(tmp_path, "batch: local, time: 1 h, via: [sh, -c, sleep 99]", "register_timeout: 1 s")
    code, said = run(tmp_path)
    assert code == 1, said
    assert 'No agent has come from the job of "far" within 1 s' in said
    assert "register_timeout" in said


def submission(home: Path, token: str, job: str = "sleep 999") -> subprocess.Popen[str]:
    """The submission of a local job, which is a command in place of an agent."""
    process = subprocess.Popen(
        [sys.executable, "-m", "titin.batch", "local", "--name", "far", "--token", "--", "sh", "-c", job],
        cwd=home,
        env=os.environ | {"HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    process.stdin.write(token)
    process.stdin.close()
    return process


def test_nothing_is_submitted_without_a_token(tmp_path: Path) -> None:
    with submission(tmp_path, "") as process:
        assert process.stderr
        assert "no token has come on standard input" in process.stderr.read()
    assert process.returncode == 2
    assert not (tmp_path / ".psij/work/titin").exists()


def test_a_submission_that_is_ended_once_the_token_is_written_leaves_no_token(tmp_path: Path) -> None:
    with submission(tmp_path, "no token") as process:
        while not list((tmp_path / ".psij/work").glob("titin/*/token")):
            assert process.poll() is None
        process.terminate()
    assert process.returncode == 130
    assert list((tmp_path / ".psij/work/titin").iterdir()) == []


def test_a_job_that_has_begun_goes_on_although_nobody_reads_what_its_submission_prints(tmp_path: Path) -> None:
    """As when the connection of ssh is gone."""
    job = f"sleep 2; ls {tmp_path}/.psij/work/titin/* >{tmp_path}/left; echo more; exit 3"
    with submission(tmp_path, "no token", job) as process:
        assert process.stdout
        words = process.stdout.readline().split()
        assert words[2:] == ["of", "local", "is", "active"]
    assert process.returncode == 3
    assert (tmp_path / "left").read_text() == "output.txt\n"
    assert list((tmp_path / ".psij/work/titin").iterdir()) == []


def test_a_job_of_slurm_brings_the_agent_to_a_run_outside_of_the_job(cluster: Cluster, tmp_path: Path) -> None:
    pair(tmp_path, "batch: slurm, time: 10 min, queue: all, cores_per_node: 2, options: {nodelist: n2}")
    said = cluster("sh", "-c", f"{TITIN} run model.ymmsl --run-dir run && squeue -h -t all -o %j:%T")
    assert printed(tmp_path, "a", "b") == ["n1 0", "n2 1"]
    assert "chain: done in" in said
    assert "titin-far:COMPLETED" in said, said
    assert list((tmp_path / ".psij/work/titin").iterdir()) == []
    assert files_with_token(tmp_path) == []


#: Ends a run while its job is queued, as Ctrl-C does. Before, the processes and the file of the token are looked at.
INTERRUPT = f"""\
set -m
{TITIN} run model.ymmsl --run-dir run >said 2>&1 &
until grep -qs 'last words' said; do sleep 0.1; done
squeue -h -o 'before: %j:%T'
stat -c 'token: %a' .psij/work/titin/*/token
grep -qsa '{TOKEN[:-1]}[{TOKEN[-1]}]' .psij/work/titin/*/token && echo 'token: is there'
grep -lsa '{TOKEN[:-1]}[{TOKEN[-1]}]' /proc/[0-9]*/cmdline /proc/[0-9]*/environ | sed 's/^/seen in: /'
kill -INT $!
wait $!
echo "code: $?"
squeue -h -t all -o 'after: %j:%T'
"""

#: Submits the job of an agent, and reads no more of what the submission prints than that the job is queued.
DESERT = f"""\
set -o pipefail
echo no token | {sys.executable} -m titin.batch slurm --name far --token --option begin=now+1hour -- sleep 9 | head -1
echo "code: $?"
squeue -h -t all -o 'after: %j:%T'
"""


def test_a_queued_job_is_cancelled_when_its_run_ends(cluster: Cluster, tmp_path: Path) -> None:
    pair(tmp_path, "batch: slurm, time: 10 min, options: {begin: now+1hour}")
    (tmp_path / "interrupt.sh").write_text(INTERRUPT)
    lines = cluster("bash", "interrupt.sh").splitlines()
    said = (tmp_path / "said").read_text()
    assert "has waited for the agent of host far for 10 s; its last words: job " in said, said
    assert "of slurm is queued" in said, said
    wanted = ["before: titin-far:PENDING", "token: 600", "token: is there", "code: 130", "after: titin-far:CANCELLED"]
    assert [line for line in lines if ": " in line] == wanted, lines
    assert list((tmp_path / ".psij/work/titin").iterdir()) == []
    assert files_with_token(tmp_path) == []


def test_a_queued_job_is_cancelled_when_nobody_reads_what_its_submission_prints(
    cluster: Cluster, tmp_path: Path
) -> None:
    """As when the connection of ssh is gone."""
    (tmp_path / "desert.sh").write_text(DESERT)
    lines = cluster("bash", "desert.sh").splitlines()
    assert re.fullmatch(r"job \d+ of slurm is (new|queued)", lines[0]), lines
    assert lines[1:] == ["code: 130", "after: far:CANCELLED"]
    assert list((tmp_path / ".psij/work/titin").iterdir()) == []
