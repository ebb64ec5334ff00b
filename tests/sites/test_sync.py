"""`titin sync`: directories that are kept up to date on another host."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import Hosts
from .test_copy import CASE, LIST

#: Functions of the shell: `keep` starts a sync, `await_same` waits until both trees are the same, `finish` ends the
#: sync as Ctrl-C does and looks that nothing is left on the other host.
FUNCTIONS = f"""\
set -e
keep() {{
    # A process in the background ignores Ctrl-C unless it is started so.
    env --default-signal=INT titin sync --titin {TITIN} "$@" >> said 2>&1 & sync=$!
    until grep -q files said || ! kill -0 $sync 2>/dev/null; do sleep 0.05; done
}}
await_same() {{
    local until=$((SECONDS + 30))
    while [ $SECONDS -lt $until ]; do
        bash list case > one; bash list $1/case > two
        ! cmp -s one two || return 0
        sleep 0.1
    done
    diff one two | head -n 20
    return 1
}}
finish() {{
    kill -INT $sync; wait $sync && return 1
    for try in $(seq 100); do
        [ "$(ssh n2 pgrep -c -f '[c]opy-end' || [ $? = 1 ])" != 0 ] || return 0
        sleep 0.1
    done
    echo the other end is left; return 1
}}
"""

#: Changes of all kinds.
CHANGES = """\
    echo more >> case/deep/file-1; await_same $there
    mv case/deep case/moved; await_same $there
    echo late > case/moved/er/late; mkdir -p case/new/er; echo x > case/new/er/x; await_same $there
    chmod 600 case/program; ln -sfn nowhere case/link; rm -r case/moved/er case/moved/file-2; await_same $there
"""

#: Both directions: the source, the destination, and the folder of the destination.
DIRECTIONS = {"there": ("case", "n2:$PWD/there"), "back": ("n2:$PWD/case", "there")}


def run(hosts: Hosts, folder: Path, text: str) -> str:
    (folder / "commands.sh").write_text(FUNCTIONS + "there=there\n" + text)
    try:
        done = hosts(2, "bash", "commands.sh")
        assert done.returncode == 0, done.stdout
    except (AssertionError, subprocess.TimeoutExpired) as failed:
        said = folder / "said"
        raise AssertionError(said.read_text() if said.exists() else "nothing said") from failed
    return done.stdout


@pytest.fixture(autouse=True)
def tree(tmp_path: Path) -> None:
    subprocess.run(["bash", "-ec", CASE], cwd=tmp_path, check=True)
    (tmp_path / "list").write_text(LIST)


@pytest.mark.parametrize(("source", "target"), DIRECTIONS.values(), ids=DIRECTIONS)
@pytest.mark.parametrize("more", ["", "--every 0.2"], ids=["events", "looks"])
def test_changes_arrive_as_they_are_made(hosts: Hosts, tmp_path: Path, source: str, target: str, more: str) -> None:
    run(hosts, tmp_path, f"keep --delete {more} {source} {target}; await_same there\n{CHANGES}\nfinish")
    said = (tmp_path / "said").read_text()
    assert said.startswith("303 files, 9.") and "removed case/deep/\n" in said and "not copied" not in said, said


@pytest.mark.parametrize(("source", "target"), DIRECTIONS.values(), ids=DIRECTIONS)
def test_nothing_is_removed_unless_told(hosts: Hosts, tmp_path: Path, source: str, target: str) -> None:
    titin = f"titin sync --titin {TITIN}"
    said = run(
        hosts,
        tmp_path,
        f"""
        {titin} --once {source} {target}
        echo mine > there/case/mine; echo mine > there/outside; rm -r case/deep/er
        {titin} --once {source} {target}
        [ -e there/case/mine -a -e there/case/deep/er/large ]
        {titin} -n --delete {source} {target}
        [ -e there/case/mine -a -e there/case/deep/er/large ]
        {titin} --once --delete --json {source} {target} > report.json
        await_same there; [ -e there/outside ]
        """,
    )
    assert "would remove case/deep/er/\nwould remove case/mine\nwould copy 0 files" in said.replace(
        "would remove case/mine\nwould remove case/deep/er/\n", "would remove case/deep/er/\nwould remove case/mine\n"
    ), said
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["removed"], sorted(report["removed_paths"])) == (3, ["case/deep/er/", "case/mine"])


@pytest.mark.parametrize(("source", "target"), DIRECTIONS.values(), ids=DIRECTIONS)
def test_a_lost_line_is_made_anew(hosts: Hosts, tmp_path: Path, source: str, target: str) -> None:
    run(
        hosts,
        tmp_path,
        f"""
        keep --delete {source} {target}; await_same there
        ip link set to-n2 down; echo 1 > case/during; sleep 2; ip link set to-n2 up; await_same there
        ssh n2 pkill -KILL -f '[c]opy-end'; rm case/during; echo 2 > case/after; await_same there
        finish
        """,
    )
    said = (tmp_path / "said").read_text()
    assert said.count("trying again in 1 s") == 1, said


@pytest.mark.parametrize(("source", "target"), DIRECTIONS.values(), ids=DIRECTIONS)
@pytest.mark.parametrize("while_away", [False, True])
def test_a_source_that_is_replaced_takes_nothing_away(
    hosts: Hosts, tmp_path: Path, source: str, target: str, while_away: bool
) -> None:
    away = "kill -STOP $sync; ssh n2 pkill -KILL -f '[c]opy-end'" if while_away else ":"
    run(
        hosts,
        tmp_path,
        f"""
        keep --delete {source} {target}; await_same there
        {away}
        mv case gone; mkdir case; kill -CONT $sync
        wait $sync && false || echo code $? >> said
        mv case empty; mv gone case; await_same there
        """,
    )
    said = (tmp_path / "said").read_text()
    assert "another directory than before" in said and said.endswith("code 2\n"), said


def slow(folder: Path, change: str) -> str:
    """An option in place of ssh, which does something before it starts the other end, and waits a second."""
    (folder / "slow").write_text(f'#!/bin/sh\ncase "$*" in *copy-end*) {change};; esac\nexec ssh "$@"\n')
    (folder / "slow").chmod(0o700)
    return f"--ssh {folder / 'slow'}"


@pytest.mark.parametrize("more", ["--once", ""])
def test_a_source_that_is_replaced_while_ssh_begins_takes_nothing_away(hosts: Hosts, tmp_path: Path, more: str) -> None:
    run(
        hosts,
        tmp_path,
        f"""
        titin sync --once --titin {TITIN} case n2:$PWD/there; await_same there
        titin sync {more} --delete {slow(tmp_path, "mv case gone; mkdir case")} --titin {TITIN} \
            case n2:$PWD/there > said 2>&1 && false || echo code $? >> said
        rmdir case; mv gone case; await_same there
        """,
    )
    said = (tmp_path / "said").read_text()
    assert "another directory than before" in said and said.endswith("code 2\n"), said


@pytest.mark.parametrize("delete", ["--delete", ""])
def test_a_source_that_goes_away_while_it_is_read_takes_nothing_away(hosts: Hosts, tmp_path: Path, delete: str) -> None:
    run(
        hosts,
        tmp_path,
        f"""
        mkdir case/many; (cd case/many; seq 4000 | xargs touch)
        keep {delete} --every 0.01 n2:$PWD/case there
        sleep 1; mv case gone
        wait $sync && false || echo code $? >> said
        mv gone case; await_same there
        """,
    )
    said = (tmp_path / "said").read_text()
    assert "removed" not in said and "case: No such file or directory" in said and said.endswith("code 2\n"), said


def test_what_is_removed_at_the_destination_comes_back(hosts: Hosts, tmp_path: Path) -> None:
    run(
        hosts,
        tmp_path,
        """
        keep case n2:$PWD/there; await_same there
        rm -r there/case/deep; echo 1 > case/deep/file-1; await_same there
        rm -r there; echo 1 > case/new; await_same there
        mv there old; mkdir there; echo 2 > case/new; await_same there
        [ "$(cat old/case/new)" = 1 ]
        finish
        """,
    )


def test_the_time_of_a_round_is_that_of_the_round(hosts: Hosts, tmp_path: Path) -> None:
    run(hosts, tmp_path, "keep --json n2:$PWD/case there; sleep 3; echo 1 > case/new; await_same there; finish")
    rounds = [json.loads(line) for line in (tmp_path / "said").read_text().splitlines()]
    assert [report["files"] for report in rounds] == [303, 1], rounds
    assert rounds[1]["seconds"] < 2, rounds


def test_a_destination_that_would_eat_its_source_is_refused(hosts: Hosts, tmp_path: Path) -> None:
    # The two hosts are one system, with the same files.
    titin = f"titin sync --once --titin {TITIN}"
    said = run(
        hosts,
        tmp_path,
        f"""
        bash list case > before
        refused() {{ {titin} "$@" && return 1 || [ $? = 2 ]; }}
        refused case n2:$PWD; refused case/ n2:$PWD/case; refused case n2:$PWD/case/deep
        refused case n2:$PWD/case/new; cd case; refused deep/ n2:$PWD/deep/new; cd ..
        {titin} --delete case/deep n2:$PWD; rm -r deep
        refused --delete case/ n2:; refused --delete case/ n2:~; refused --delete case/deep/ n2:$PWD/case
        bash list case > after; cmp before after
        """,
    )
    assert said.count("the destination is the source, or below it") == 5, said
    assert said.count("would be removed") + said.count("the destination is above the source") == 3, said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("case/program n2:there", "it is no directory; a single file goes by `titin copy`"),
        ("n2:$PWD/case/program there", "it is no directory; a single file goes by `titin copy`"),
        ("case there", "neither side is HOST:PATH"),
        ("case n2:no/such/place", "n2: no/such: there is no such directory"),
        ("--every=-1 case n2:there", "--every -1 is no number of seconds"),
        ("case case/deep n2:there", "case/deep: it is below case, another source"),
        ("--every 1 --once case n2:there", "cannot be used with"),
        ("nothing n2:there", "nothing: No such file or directory"),
    ],
)
def test_what_cannot_be_kept_is_told(hosts: Hosts, tmp_path: Path, words: str, why: str) -> None:
    said = run(hosts, tmp_path, f"titin sync --titin {TITIN} {words} && c=0 || c=$?; echo code $c")
    assert why in " ".join(said.split()) and "code 2" in said and "trying again" not in said, said
