"""``titin completions``: a shell of each kind completes the command as a user would have it."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..conftest import TITIN, needs

WATCHDOG = 60  # seconds; only a hang takes so long


def script(shell: str) -> str:
    return subprocess.run([TITIN, "completions", shell], capture_output=True, text=True, check=True).stdout


class Terminal:
    """A shell at a terminal of its own."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment)
        self.shown = ""

    def type(self, keys: str) -> None:
        os.write(self.end, keys.encode())

    def wait_for(self, pattern: str) -> str:
        """Waits until the terminal shows this, and forgets what it has shown."""
        deadline = time.monotonic() + WATCHDOG
        while not (found := re.search(pattern, self.shown)):
            ready, _, _ = select.select([self.end], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{pattern} is not shown: {self.shown!r}"
            self.shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", os.read(self.end, 65536).decode(errors="replace"))
        self.shown = self.shown[found.end() :]
        return found[0]


@contextmanager
def terminal(command: list[str], folder: Path) -> Iterator[Terminal]:
    environment = os.environ | {"TERM": "dumb", "HOME": str(folder), "PS1": "ready> ", "PATH": os.environ["PATH"]}
    shell = Terminal(command, environment)
    try:
        yield shell
    finally:
        os.kill(shell.pid, signal.SIGKILL)
        os.waitpid(shell.pid, 0)
        os.close(shell.end)


#: What is typed before the key Tab, and the line that comes of it.
LINES = {
    "titin che": r"titin check ",
    "titin config --compat muscle2 --cfl": r"titin config --compat muscle2 --cflags ",
    "titin completions fi": r"titin completions fish ",
    "titin relay ini": r"titin relay init ",
}


def test_bash(tmp_path):
    needs("bash")
    (tmp_path / "titin.bash").write_text(script("bash"))
    with terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path) as shell:
        shell.type(f"PS1='re''ady> '; source {tmp_path}/titin.bash\n")
        for typed, line in LINES.items():
            shell.wait_for(r"ready> $")
            shell.type(f"{typed}\t")
            shell.wait_for(line)
            shell.type("\x15\n")  # the line is given up
        shell.wait_for(r"ready> $")
        (tmp_path / "a_model.ymmsl").touch()
        shell.type(f"titin check {tmp_path}/a_mo\t")
        shell.wait_for(r"a_model.ymmsl")


def test_zsh(tmp_path):
    needs("zsh")
    (tmp_path / "_titin").write_text(script("zsh"))
    with terminal(["zsh", "-f", "-i"], tmp_path) as shell:
        shell.type(f"PS1='re''ady> '; unsetopt zle_bracketed_paste; fpath=({tmp_path} $fpath); autoload -U compinit\n")
        shell.wait_for(r"ready> ")
        shell.type(f"compinit -u -d {tmp_path}/dump && echo com''piled\n")
        shell.wait_for(r"compiled")
        for typed, line in LINES.items():
            shell.wait_for(r"ready> ")
            shell.type(f"{typed}\t")
            shell.wait_for(line)
            shell.type("\x15\n")


# clap_complete's script for fish has no values of arguments without a name.
@pytest.mark.parametrize("typed", [typed for typed in LINES if not typed.startswith("titin completions")])
def test_fish(typed, tmp_path):
    needs("fish")
    (tmp_path / "titin.fish").write_text(script("fish"))
    asked = f"source {tmp_path}/titin.fish; complete -C {typed!r}"
    environment = os.environ | {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(
        ["fish", "--no-config", "-c", asked], capture_output=True, text=True, timeout=WATCHDOG, env=environment
    )
    words = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert words == [LINES[typed].split()[-1]], done.stdout + done.stderr


def test_another_shell_is_refused():
    done = subprocess.run([TITIN, "completions", "csh"], capture_output=True, text=True)
    assert done.returncode == 2 and "[possible values: bash, fish, zsh]" in done.stderr


def commands() -> list[str]:
    """The subcommands that `titin --help` shows."""
    shown = subprocess.run([TITIN, "--help"], capture_output=True, text=True, check=True).stdout
    section = shown.split("Commands:")[1].split("Options:")[0]
    return [name for name in re.findall(r"^  ([a-z]+) ", section, re.MULTILINE) if name != "help"]


@pytest.fixture(scope="module")
def manuals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man") / "man1"
    subprocess.run([TITIN, "man", folder], check=True)
    return folder


@pytest.mark.parametrize("name", ["", *commands()])
def test_a_manual_page_is_shown(name, manuals):
    needs("man")
    page = manuals / ("titin.1" if not name else f"titin-{name}.1")
    environment = os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANPAGER": "cat", "MAN_KEEP_FORMATTING": ""}
    shown = subprocess.run(
        ["man", "--warnings", "-l", page], capture_output=True, text=True, timeout=WATCHDOG, env=environment
    )
    # A long word leaves a gap in its line.
    warnings = [line for line in shown.stderr.splitlines() if "cannot adjust line" not in line]
    assert shown.returncode == 0 and not warnings, shown.stderr
    text = re.sub(r".\x08", "", shown.stdout)
    for word in ("NAME", "SYNOPSIS", page.stem):
        assert word in text, text[:500]


def test_the_wheel_has_the_manual_pages(manuals):
    installed = TITIN.parents[1] / "share/man/man1"
    assert {page.name for page in installed.glob("titin*.1")} == {page.name for page in manuals.iterdir()}


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").touch()
    done = subprocess.run([TITIN, "man", tmp_path / "file/man"], capture_output=True, text=True)
    assert done.returncode == 2 and "the manual pages cannot be written to" in done.stderr


def test_hidden_commands_have_no_page(manuals):
    names = {page.stem for page in manuals.iterdir()}
    assert not names & {"titin-guard", "titin-echo", "titin-component", "titin-copy-end"}
    assert shutil.which("man") is None or len(names) > len(commands())
