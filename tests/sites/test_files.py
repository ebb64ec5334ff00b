"""A host without the run directory: files go there before the start, and all of a program's come back."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import HOSTS, STAGE, Hosts

#: Reads a staged file, writes others, and prints; with a number, so many bytes more.
WORKER = """\
import os, sys, time
from pathlib import Path
import titin

with titin.Instance(f_init=["in"]) as instance:
    while instance.reuse():
        instance.receive("in")
        mesh = Path("mesh.dat").read_bytes()
        print("mesh of", len(mesh), "bytes on", os.uname().nodename, flush=True)
        while Path(sys.argv[1]).exists():
            time.sleep(0.02)
        Path("deep/er").mkdir(parents=True)
        Path("deep/er/out.dat").write_bytes(bytes(reversed(mesh)))
        Path("empty").touch()
        Path("link").symlink_to("deep/er/out.dat")
        Path("run.sh").write_text("#!/bin/sh\\n")
        Path("run.sh").chmod(0o755)
        print("no mesh is perfect", file=sys.stderr)
"""

MODEL = """\
ymmsl_version: v0.2
models:
  files:
    components:
      clock: {{description: begins, ports: {{o_f: o}}, implementation: clock}}
      worker: {{description: works, ports: {{f_init: in}}, implementation: worker}}
    conduits: {{clock.o: worker.in}}
programs:
  clock: {{executable: {python}, args: [{folder}/stage.py, first]}}
  worker: {{executable: {python}, args: [{folder}/worker.py, {folder}/wait]}}
titin:
  hosts: {{n2: {{components: [worker], folder: {folder}/scratch}}}}
  stage: {{worker: {{in: [mesh.dat], out: ["deep", "link"]}}}}
"""


def prepare(folder: Path, size: int) -> bytes:
    """Writes the model and a mesh of so many bytes."""
    mesh = os.urandom(size)
    (folder / "mesh.dat").write_bytes(mesh)
    (folder / "worker.py").write_text(WORKER)
    (folder / "stage.py").write_text(STAGE)
    (folder / "model.ymmsl").write_text(MODEL.format(python=sys.executable, folder=folder))
    (folder / "scratch").mkdir()
    (folder / "run").mkdir()
    return mesh


@pytest.mark.parametrize("size", [0, 1, 131_072, 20_000_003])
def test_all_files_come_back(hosts: Hosts, tmp_path: Path, size: int) -> None:
    mesh = prepare(tmp_path, size)
    done = hosts(2, HIDDEN=str(tmp_path / "run"))
    assert done.returncode == 0, done.stdout
    worker = tmp_path / "run/instances/worker"
    assert (worker / "stdout.txt").read_text() == f"mesh of {size} bytes on n2\n"
    assert (worker / "stderr.txt").read_text() == "no mesh is perfect\n"
    workdir, results = worker / "workdir", tmp_path / "run/results/worker"
    for file in [workdir / "deep/er/out.dat", workdir / "link", results / "deep/er/out.dat"]:
        assert hashlib.sha256(file.read_bytes()).digest() == hashlib.sha256(bytes(reversed(mesh))).digest()
    assert (workdir / "empty").read_bytes() == b""
    assert (workdir / "link").is_symlink()
    assert os.access(workdir / "run.sh", os.X_OK)
    assert list((tmp_path / "scratch").iterdir()) == []


#: Changes staged files in ways that neither length nor time of change tells.
CHANGER = """\
import os
from pathlib import Path
import titin

with titin.Instance(f_init=["in"]) as instance:
    while instance.reuse():
        instance.receive("in")
        before = os.stat("case/same")
        with open("case/same", "r+") as file:
            file.write("SAME")
        os.utime("case/same", ns=(before.st_atime_ns, before.st_mtime_ns))
        os.chmod("case/mode", 0o600)
        os.remove("case/old")
        os.rename("case/name", "case/renamed")
        os.mkdir("case/private")
        os.chmod("case/private", 0o700)
        os.truncate("/proc/self/fd/1", 0)
        print("the only line", flush=True)
"""


@pytest.mark.parametrize("shares_files", [True, False])
def test_what_a_program_does_to_staged_files_is_in_the_run_directory(
    hosts: Hosts, tmp_path: Path, shares_files: bool
) -> None:
    prepare(tmp_path, 1)
    (tmp_path / "worker.py").write_text(CHANGER)
    model = (tmp_path / "model.ymmsl").read_text()
    (tmp_path / "model.ymmsl").write_text(
        model.replace('in: [mesh.dat], out: ["deep", "link"]', "in: [case], out: [case]")
    )
    case = tmp_path / "case"
    case.mkdir()
    for name in ["same", "mode", "old", "name", "kept"]:
        (case / name).write_text(name)
        os.utime(case / name, ns=(10**18, 10**18))
    done = hosts(2) if shares_files else hosts(2, HIDDEN=str(tmp_path / "run"))
    assert done.returncode == 0, done.stdout
    for found in [tmp_path / "run/instances/worker/workdir/case", tmp_path / "run/results/worker/case"]:
        assert sorted(path.name for path in found.iterdir()) == ["kept", "mode", "private", "renamed", "same"]
        assert (found / "same").read_text() == "SAME"
        assert (found / "renamed").read_text() == "name"
        assert [(found / name).stat().st_mtime_ns for name in ["same", "mode", "renamed", "kept"]] == [10**18] * 4
        assert (found / "mode").stat().st_mode & 0o777 == 0o600
        assert (found / "private").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "run/instances/worker/stdout.txt").read_text().strip("\0") == "the only line\n"


@pytest.mark.usefixtures("namespaces")
def test_output_comes_while_the_program_runs(tmp_path: Path) -> None:
    prepare(tmp_path, 5)
    (tmp_path / "wait").touch()
    command = [HOSTS, "2", TITIN, "run", "model.ymmsl", "--run-dir", "run"]
    env = {**os.environ, "HIDDEN": str(tmp_path / "run")}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as run:
        output = tmp_path / "run/instances/worker/stdout.txt"
        while not (output.exists() and "on n2" in output.read_text()):
            assert run.poll() is None
            time.sleep(0.05)
        (tmp_path / "wait").unlink()
        said = run.communicate(timeout=60)[0]
    assert run.returncode == 0, said


def test_a_program_that_is_not_there_is_named(hosts: Hosts, tmp_path: Path) -> None:
    prepare(tmp_path, 5)
    model = tmp_path / "model.ymmsl"
    text = f"worker: {{executable: {sys.executable}"
    model.write_text(model.read_text().replace(text, "worker: {executable: no-such-python"))
    done = hosts(2, HIDDEN=str(tmp_path / "run"))
    assert done.returncode == 1, done.stdout
    said = " ".join(done.stdout.split())
    assert re.search(r"First: worker on host n2 could not be started: .*no-such-python", said), done.stdout
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(hosts: Hosts, tmp_path: Path) -> None:
    prepare(tmp_path, 5)
    (tmp_path / "scratch").rmdir()
    done = hosts(2, HIDDEN=str(tmp_path / "run"))
    assert done.returncode == 1, done.stdout
    assert re.search(r"the agent of host n2 cannot make \S+scratch/titin-run-", " ".join(done.stdout.split()))


#: Kills the agent while the files come back, or ends the run.
AGAINST = """\
titin run model.ymmsl --run-dir run >said 2>&1 & run=$!
until grep -qs large run/instances/worker/stdout.txt; do sleep 0.02; done
ssh n2 tc qdisc add dev eth0 root tbf rate 100mbit burst 64k latency 50ms
until [ -s run/instances/worker/workdir/deep/er/out.dat ]; do sleep 0.02; done
$1
wait $run; code=$?
cat said
ls -d scratch/titin-run-*
exit $code
"""


@pytest.mark.parametrize(
    "against", ["pkill -KILL -f '^[^ ]*titin agent'", "pkill -TERM -f '^[^ ]*titin run'", "ip link set to-n2 down"]
)
def test_files_that_do_not_come_are_said_to_be_there(hosts: Hosts, tmp_path: Path, against: str) -> None:
    prepare(tmp_path, 200_000_000)
    worker = tmp_path / "worker.py"
    worker.write_text(worker.read_text().replace('print("mesh of"', 'print("large mesh of"', 1))
    (tmp_path / "against.sh").write_text(AGAINST.replace("$1", against))
    done = hosts(2, "sh", "against.sh", HIDDEN=str(tmp_path / "run"))
    assert done.returncode != 0, done.stdout
    said = " ".join(done.stdout.split())
    found = re.search(r"the files of host n2 have not all come; they may be there in (\S+)", said)
    assert found, done.stdout
    # The report of the run has it too, as the cause or among the files.
    assert said.count(found[0], said.rindex("The run of files")) == 1, done.stdout
    assert Path(found[1]).parent == tmp_path / "scratch"
    # Nobody takes a part for the whole.
    assert "of worker/workdir/deep/er/out.dat a part had come from host n2, which was removed" in said
    assert not (tmp_path / "run/instances/worker/workdir/deep/er/out.dat").exists()
    assert found[1] in done.stdout.splitlines()[-1] or Path(found[1]).is_dir(), done.stdout


def test_a_full_disk_keeps_the_files_of_the_host(hosts: Hosts, tmp_path: Path) -> None:
    """The agent says what has failed, on its own host: the manager is there, and its disk is full."""
    prepare(tmp_path, 9_000_000)
    said = tmp_path / "agent.txt"
    starter = f"[sh, -c, 'exec \"$@\" 2>{said}', sh, nsenter, --all, --target, PID]"
    model = tmp_path / "model.ymmsl"
    model.write_text(model.read_text().replace("{n2: {", f"{{n2: {{start: {starter}, "))
    (tmp_path / "full.sh").write_text(
        "sed -i s/PID/$(pgrep -of '^dropbear.*n2[.]pid')/ model.ymmsl\n"
        f"mount -t tmpfs -o size=12m none run; {TITIN} run model.ymmsl --run-dir run/here; code=$?; exit $code\n"
    )
    done = hosts(2, "sh", "full.sh", HIDDEN=str(tmp_path / "run"))
    assert done.returncode == 1, done.stdout
    assert "No space left on device" in done.stdout
    assert not (tmp_path / "run/here/instances/worker/workdir/deep/er/out.dat").exists()
    assert len(list((tmp_path / "scratch").glob("titin-run-*/instances/worker/workdir/deep/er/out.dat"))) == 1
    agent = " ".join(said.read_text().split())
    assert re.search(
        r"not all files of this host could be copied to the run directory: .*No space left on device.*; "
        r"the programs on this host were ended, and their files stay in \S+/scratch/titin-run-",
        agent,
    ), agent
    assert "is gone" not in agent


#: Ends the worker with a folder that is not writable, and if told to, with a file whose path is too long to be read.
HARD = """\
        Path("read-only").mkdir()
        Path("read-only/file").touch()
        Path("read-only").chmod(0o555)
        if Path(sys.argv[1] + "-deep").exists():
            for _ in range(250):
                os.mkdir(20 * "d")
                os.chdir(20 * "d")
            Path("precious").touch()
"""


@pytest.mark.parametrize("is_deep", [False, True])
def test_files_that_cannot_be_copied_stay_on_the_host_and_others_do_not(
    hosts: Hosts, tmp_path: Path, is_deep: bool
) -> None:
    prepare(tmp_path, 1000)
    with (tmp_path / "worker.py").open("a") as worker:
        worker.write(HARD)
    if is_deep:
        (tmp_path / "wait-deep").touch()
    done = hosts(2, HIDDEN=str(tmp_path / "run"))
    assert done.returncode == is_deep, done.stdout
    assert (tmp_path / "run/instances/worker/workdir/read-only/file").exists()
    folders = list((tmp_path / "scratch").iterdir())
    assert len(folders) == is_deep
    if is_deep:
        said = " ".join(done.stdout.split())
        assert f"the files of host n2 have not all come; they may be there in {folders[0]}" in said, said
        found = subprocess.run(["find", folders[0], "-name", "precious"], capture_output=True, text=True, check=False)
        assert found.stdout.count("precious") == 1
        subprocess.run(["rm", "-rf", folders[0]], check=True)
