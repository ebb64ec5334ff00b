"""`titin copy`: files to another host and back, by ssh and a path."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from ..conftest import ROOT, TITIN
from ..docs.test_walkthrough import blocks, pattern, steps
from .conftest import Hosts

#: Makes a tree of all kinds in the folder `case`.
CASE = """\
mkdir -p case/deep/er case/empty
head -c 9000000 /dev/urandom > case/deep/er/large
for number in $(seq 300); do echo $number > case/deep/file-$number; done
truncate -s 100M case/sparse; printf x | dd of=case/sparse bs=1 seek=50000000 conv=notrunc status=none
ln -s deep/er/large case/link
printf '#!/bin/sh' > case/program; chmod 751 case/program; chmod 500 case/empty
touch -d 2001-02-03T04:05:06.123456789 case/deep/er/large case/deep
"""

#: What `find` says of a tree: names, kinds, permissions, times and links, and the sums of the files.
LIST = "(cd $1; find . -printf '%p %y %m %T@ %l\\n' | sort; find . -type f -exec sha256sum {} + | sort)"


def run(hosts: Hosts, folder: Path, text: str, **env: str) -> str:
    (folder / "commands.sh").write_text("set -e\n" + text)
    done = hosts(2, "bash", "commands.sh", **env)
    assert done.returncode == 0, done.stdout
    return done.stdout


def copy(*words: str, titin: str | Path = TITIN) -> str:
    return " ".join(["titin", "copy", "--titin", str(titin), *words])


@pytest.fixture(autouse=True)
def tree(tmp_path: Path) -> None:
    subprocess.run(["bash", "-ec", CASE], cwd=tmp_path, check=True)
    (tmp_path / "list").write_text(LIST)


def test_a_tree_goes_there_and_comes_back(hosts: Hosts, tmp_path: Path) -> None:
    said = run(
        hosts,
        tmp_path,
        f"""
        {copy("case", "n2:$PWD/there")}
        bash list case > one; bash list there/case > two; cmp one two
        {copy("--streams 3", "n2:$PWD/there/case", "back")}
        bash list back/case > three; cmp one three
        {copy("n2:$PWD/there/case", "back", "--json")} > again.json
        echo 1 > case/deep/new; chmod 600 case/program
        {copy("case/", "n2:~/there-by-home")}
        """,
    )
    found = re.findall(r"^(\d+) files, (\S+ \S+) in", said, re.MULTILINE)
    assert [files for files, _ in found] == ["303", "303", "304"], said
    # The hole of the sparse file is not sent.
    assert all(size.startswith("9.") for _, size in found), said
    again = json.loads((tmp_path / "again.json").read_text())
    assert (again["files"], again["bytes"], again["unchanged"], again["failed"]) == (0, 0, 303, [])


def test_what_would_be_copied_is_shown(hosts: Hosts, tmp_path: Path) -> None:
    said = run(hosts, tmp_path, f"""{copy("-n", "case", "n2:$PWD/there")}; {copy("-n", "n2:$PWD/case/program", ".")}""")
    assert "case/deep/er/large 9.00 MB" in said, said
    assert re.search(r"would copy 303 files, 1\d\d MB$", said, re.MULTILINE), said
    assert re.search(r"^program 9 B\nwould copy 1 file, 9 B$", said, re.MULTILINE), said
    assert not (tmp_path / "there").exists() and not (tmp_path / "program").exists()


#: Both directions, with what is copied from where to where.
DIRECTIONS = {"there": ("large", "n2:$PWD/copied"), "back": ("n2:$PWD/large", "copied")}


@pytest.mark.parametrize(("source", "target"), DIRECTIONS.values(), ids=DIRECTIONS)
def test_a_cut_of_the_line_costs_time_only(hosts: Hosts, tmp_path: Path, source: str, target: str) -> None:
    said = run(
        hosts,
        tmp_path,
        f"""
        head -c 40000000 /dev/urandom > large
        {copy("--pacing 15000000", source, target)} & copy=$!
        until [ -s .copied.titin-part ]; do sleep 0.05; done
        ip link set to-n2 down; sleep 4; ip link set to-n2 up
        wait $copy
        cmp large copied
        """,
    )
    assert "1 file, 40.0 MB in" in said, said


@pytest.mark.parametrize(("source", "target"), DIRECTIONS.values(), ids=DIRECTIONS)
@pytest.mark.parametrize("signal", ["INT", "KILL"])
def test_a_copy_that_was_ended_goes_on_where_it_was(
    hosts: Hosts, tmp_path: Path, source: str, target: str, signal: str
) -> None:
    run(
        hosts,
        tmp_path,
        f"""
        head -c 60000000 /dev/urandom > large
        # A process in the background ignores Ctrl-C unless it is started so.
        env --default-signal=INT {copy("--pacing 20000000", source, target)} & copy=$!
        until [ "$(stat -c %s .copied.titin-part 2>/dev/null || echo 0)" -gt 20000000 ]; do sleep 0.05; done
        kill -{signal} $copy; ! wait $copy
        [ ! -e copied ]
        {copy("--json", source, target)} > report.json
        cmp large copied
        [ ! -e .copied.titin-part ]
        """,
    )
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["files"] == 1 and 1_000_000 < report["bytes"] < 41_000_000, report


def test_a_host_behind_a_firewall_is_reached_through_ssh(hosts: Hosts, tmp_path: Path) -> None:
    said = run(
        hosts,
        tmp_path,
        f"""
        # No answer of another port than that of ssh comes back.
        ip -n n2 rule add ipproto tcp sport 1024-65534 to 10.70.0.0/24 table 66
        ip -n n2 route add blackhole default table 66
        {copy("case", "n2:$PWD/there")}
        bash list case > one; bash list there/case > two; cmp one two
        """,
    )
    assert "303 files" in said, said


@pytest.mark.parametrize(
    ("words", "why", "code"),
    [
        ("case other", "neither side is HOST:PATH: on one host use cp or rsync", 2),
        ("n2:a n2:b", "both sides are HOST:PATH", 2),
        ("case n2:a b", "all sources must be on the same host", 2),
        ("nothing n2:there", "nothing: No such file or directory", 2),
        ("n2:nothing there", "n2: nothing: No such file or directory", 2),
        ("case n2:no/such/place", "n2: no/such: there is no such directory", 2),
        ("n2:$PWD/case no/such/place", "no/such: there is no such directory", 2),
        ("case nowhere.invalid:there", "ssh does not reach the other host", 2),
        ("case/program case/deep/../program n2:there", "two sources are called program", 2),
        ("--ssh no-such-ssh case n2:there", "cannot start no-such-ssh", 2),
        ("case/deep/er/../.. n2:$PWD/there", "", 0),
        ("case/deep/er/../../.. n2:$PWD/there", "the destination is the source, or below it", 2),
        ("--outage=-1 case n2:there", "--outage -1 is no number of seconds", 2),
    ],
)
def test_what_cannot_be_copied_is_told(hosts: Hosts, tmp_path: Path, words: str, why: str, code: int) -> None:
    said = run(hosts, tmp_path, f"{copy(words)} && c=0 || c=$?; echo code $c")
    assert why in " ".join(said.split()) and f"code {code}" in said, said


def test_a_host_without_titin_is_told(hosts: Hosts, tmp_path: Path) -> None:
    said = run(hosts, tmp_path, f"{copy('case n2:there', titin='no-such-command')} || echo code $?")
    assert "no-such-command" in said and "has started no titin" in said and "code 2" in said, said


def test_a_file_that_cannot_be_copied_is_named(hosts: Hosts, tmp_path: Path) -> None:
    said = run(
        hosts,
        tmp_path,
        f"""
        mkfifo case/pipe; mkdir -p there/case/program
        {copy("case", "n2:$PWD/there")} && false || echo code $?
        """,
    )
    assert "code 1" in said and re.search(r"not copied: .*pipe: it is no file, link or directory", said), said
    assert re.search(r"not copied: case/program: .*directory", said), said
    assert (tmp_path / "there/case/deep/er/large").stat().st_size == 9_000_000


def test_the_page_about_copying_is_true(hosts: Hosts, tmp_path: Path) -> None:
    texts = [text for language, _, text in blocks("docs/copy.md") if language == "console"]
    for command, expected in [step for text in texts for step in steps(text)]:
        here = re.sub("titin (copy|sync)", rf"\g<0> --titin {TITIN}", command).replace("far:", "n2:$PWD/")
        said = run(hosts, tmp_path, f"mkdir -p scratch; {here}")
        assert re.fullmatch(pattern(expected), said), said
    assert (ROOT / "docs/copy.md").read_text().count("titin copy") > 2 and os.path.isdir(tmp_path / "scratch/case")
