"""titin.sampler: rows of settings go to free members, and results are written as they come."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from .conftest import HERE, Done, titin

MODEL = """\
ymmsl_version: v0.2
models:
  study:
    components:
      sampler: {{description: hands out, ports: {{o_i: settings, s: results}}, implementation: titin.sampler}}
      member:
        description: a member
        ports: {{f_init: {port}, o_f: out}}
        implementation: member
        multiplicity: {members}
    conduits: {{sampler.settings: member.{to}, member.out: sampler.results}}
programs:
  member:
    executable: python3
    args: [{here}/row.py]
    supported_settings: {{k: float, n: int, name: str, how: str, depth: float}}
settings: {{sampler.results: results.csv, {settings}}}
titin: {{grace: 1 s{ensemble}}}
"""


def run(folder: Path, members: int = 3, ensemble: str = "", settings: str = "", *, by_settings: bool = False) -> Done:
    """Runs a study on ``table.csv``."""
    port, to = ("[]", "muscle_settings_in") if by_settings else ("row", "row")
    text = MODEL.format(
        members=members,
        here=HERE,
        port=port,
        to=to,
        settings=settings if "sampler.table" in settings else ", ".join(["sampler.table: table.csv", settings]),
        ensemble=f", ensemble: {{member: {ensemble}}}" if ensemble else "",
    )
    (folder / "model.ymmsl").write_text(text)
    number = len(list(folder.glob("run*")))
    return titin(folder, "model.ymmsl", run=f"run{number}")


def write(folder: Path, columns: str, rows: list[str]) -> None:
    (folder / "table.csv").write_text("\n".join([columns, *rows]) + "\n")


def results(folder: Path) -> dict[int, dict[str, str]]:
    with (folder / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    numbered = {int(row["row"]): row for row in rows}
    assert len(numbered) == len(rows), "each row once"
    return numbered


@pytest.mark.parametrize("by_settings", [False, True])
def test_each_row_has_its_result(tmp_path: Path, by_settings: bool) -> None:
    write(tmp_path, "k,n,name", [f"{number / 4},{number},row {number}" for number in range(40)])
    done = run(tmp_path, by_settings=by_settings)
    assert done.code == 0, done.said
    found = results(tmp_path)
    assert sorted(found) == list(range(40))
    for number, row in found.items():
        assert row["status"] == "done" and row["reason"] == ""
        assert (float(row["k"]), int(row["n"]), row["name"]) == (number / 4, number, f"row {number}")
        assert float(row["product"]) == number / 4 * number and row["greeting"] == f"I am row {number}"


def test_a_failed_row_is_told_and_the_study_goes_on(tmp_path: Path) -> None:
    write(tmp_path, "k,n,how", [f"1.0,{number},{'exit' if number in (2, 5) else 'fine'}" for number in range(12)])
    done = run(tmp_path, 4, "{allow_failures: 2}")
    assert done.code == 0, done.said
    found = results(tmp_path)
    assert {number for number, row in found.items() if row["status"] == "failed"} == {2, 5}
    assert "ended with exit code 3" in found[2]["reason"] and found[2]["product"] == ""
    assert len(found) == 12 and done.end["ensembles"][0]["allowed"] == 2


def test_a_row_goes_to_another_member(tmp_path: Path) -> None:
    write(tmp_path, "k,n,how", [f"1.0,{number},{'once' if number == 3 else 'fine'}" for number in range(8)])
    done = run(tmp_path, 3, "{allow_failures: 1}", "sampler.retry: 1")
    assert done.code == 0, done.said
    assert {row["status"] for row in results(tmp_path).values()} == {"done"}
    assert len(done.end["ensembles"][0]["failed"]) == 1


def test_members_that_fail_are_started_again(tmp_path: Path) -> None:
    write(tmp_path, "k,n,how", [f"1.0,{number},{'exit' if number in (2, 5, 6) else 'fine'}" for number in range(12)])
    done = run(tmp_path, 2, "{retry: 3}")
    assert done.code == 0, done.said
    found = results(tmp_path)
    assert {number for number, row in found.items() if row["status"] == "failed"} == {2, 5, 6}
    assert all(float(row["product"]) == number for number, row in found.items() if row["status"] == "done")
    assert len(found) == 12 and done.end["ensembles"] == []


def test_a_table_without_rows_is_no_hindrance_for_the_next_run(tmp_path: Path) -> None:
    write(tmp_path, "k,n", [])
    assert run(tmp_path, 1).code == 0
    assert (tmp_path / "results.csv").read_text() == "row,k,n,status,reason\n"
    write(tmp_path, "k,n,name", ["0.5,3,x"])
    done = run(tmp_path, 1)
    assert done.code == 0, done.said
    assert float(results(tmp_path)[0]["product"]) == 1.5


def test_a_study_goes_on_where_it_stopped(tmp_path: Path) -> None:
    write(tmp_path, "k,n,how", [f"1.0,{number},{'exit' if number == 6 else 'fine'}" for number in range(10)])
    stopped = run(tmp_path, 1, "{allow_failures: 1}")
    assert stopped.code == 1 and "all 1 members have failed, and rows are left" in stopped.said, stopped.said
    assert sorted(results(tmp_path)) == list(range(7))
    with (tmp_path / "results.csv").open("a") as file:
        file.write("7,1.0,7,fi")
    done = run(tmp_path, 2)
    assert done.code == 0, done.said
    found = results(tmp_path)
    assert sorted(found) == list(range(10)) and found[6]["status"] == "failed"
    assert sum(row["status"] == "done" for row in found.values()) == 9

    write(tmp_path, "k,n,how", ["2.0,0,fine"])
    changed = run(tmp_path, 2)
    assert changed.code == 1 and "its row 0 has other settings than the table has now" in " ".join(changed.said.split())


def test_all_rows_go_over_a_few_members(tmp_path: Path) -> None:
    write(tmp_path, "k,n", [f"{number}.5,{number}" for number in range(500)])
    done = run(tmp_path, 2)
    assert done.code == 0, done.said
    found = results(tmp_path)
    assert len(found) == 500 and {row["status"] for row in found.values()} == {"done"}
    used = {row["process"] for row in found.values()}
    assert len(used) == 2, "both members take rows"


@pytest.mark.parametrize(
    ("columns", "rows", "settings", "words"),
    [
        (
            "k,m,nam",
            ["1,2,x"],
            "",
            ["'line': 17, 'column': 42", 'column "nam" of "table.csv" is no setting of "member"', '"name"?'],
        ),
        ("k,k", ["1,2"], "", ["column 1 is called 'k', as another one is"]),
        ("k,n", ["1,2", "3"], "", ["table.csv"]),
        ("k,n", ["1,"], "", ["row 0 has no value for 'n'"]),
        ("k,n", ["1,2"], "sampler.retry: -1", ["retry"]),
    ],
)
def test_wrong_tables_are_named(tmp_path: Path, columns: str, rows: list[str], settings: str, words: list[str]) -> None:
    write(tmp_path, columns, rows)
    done = run(tmp_path, 2, settings=settings)
    assert done.code != 0
    said = " ".join((done.said + str(done.end)).split())
    for word in words:
        assert word in said, said


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        # A blank before a quotation mark makes it a part of the name.
        ("table.csv", '# k, and n\nk, "n"\n1,2\n', 'column ""n"" of "table.csv" is no setting of "member"'),
        ("table.csv", 'k,"n,m"\n1,2\n', 'column "n,m" of "table.csv" is no setting of "member"'),
        ("rows.jsonl", '{"data": {"k": 1.0, "nam": "x"}}\n', 'column "nam" of "rows.jsonl" is no setting of "member"'),
        ("table.csv", "", "it is empty"),
        ("table.npy", "no array", "table.npy"),
    ],
)
def test_the_check_reads_the_table_as_the_sampler_does(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    done = run(tmp_path, 2, settings=f"sampler.table: {name}")
    assert done.code == 2, done.said
    told = done.said + " ".join(f"{problem['what']}: {problem['why']}" for problem in done.end["problems"])
    assert said in told, told


def test_a_table_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    done = run(tmp_path, 1)
    assert done.code == 1, "the sampler looks for it in vain"
    assert '"table.csv", the table of "sampler", is not there' in " ".join(done.said.split()), done.said


def test_a_table_of_numpy_has_its_columns_named(tmp_path: Path) -> None:
    np.save(tmp_path / "table.npy", np.array([[0.5, 3.0], [1.5, 4.0]]))
    named = 'sampler.table: table.npy, sampler.columns: "k, depth", member.depth: 0.0'
    done = run(tmp_path, 2, settings=named)
    assert done.code == 0, done.said
    found = results(tmp_path)
    assert [float(found[row]["product"]) for row in (0, 1)] == [0.5 * 7, 1.5 * 7]
    assert [float(found[row]["depth"]) for row in (0, 1)] == [3.0, 4.0]


def test_members_of_a_sampler_all_run(tmp_path: Path) -> None:
    write(tmp_path, "k,n", ["1,2"])
    done = run(tmp_path, 3, "{at_once: 2}")
    assert done.code == 2
    [problem] = done.end["problems"]
    assert problem["what"] == 'not all members of "member" would run' and problem["line"] == 18


def test_a_member_that_answers_twice_ends_the_study(tmp_path: Path) -> None:
    # Else each later result of the member would stand in the line of another row.
    write(tmp_path, "k,n,how", [f"{number}.5,{number},{'twice' if number == 2 else 'fine'}" for number in range(40)])
    done = run(tmp_path, 2)
    assert done.code == 1
    assert "has sent a second result for a row" in " ".join(done.said.split()), done.said
    for number, row in results(tmp_path).items():
        assert float(row["product"]) == (number + 0.5) * number, row


def test_the_results_are_no_file_of_the_user(tmp_path: Path) -> None:
    write(tmp_path, "k,n", ["1,2"])
    notes = "a,b\n1,2\nthe last line has no end"
    (tmp_path / "results.csv").write_text(notes)
    done = run(tmp_path, 1)
    assert done.code == 1 and "is not of this table" in " ".join(done.said.split()), done.said
    assert (tmp_path / "results.csv").read_text() == notes


def test_a_study_goes_on_after_a_run_without_any_result(tmp_path: Path) -> None:
    write(tmp_path, "k,n,how", [f"1.0,{number},{'exit' if number == 0 else 'fine'}" for number in range(4)])
    assert run(tmp_path, 1, "{allow_failures: 1}").code == 1
    done = run(tmp_path, 1)
    assert done.code == 0, done.said
    found = results(tmp_path)
    assert [found[number]["status"] for number in range(4)] == ["failed", "done", "done", "done"]
    assert found[0]["product"] == "" and float(found[3]["product"]) == 3


def test_a_table_of_a_spreadsheet_may_begin_with_a_mark(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"\xef\xbb\xbfk,n\r\n0.5,3\r\n")
    done = run(tmp_path, 1)
    assert done.code == 0, done.said
    assert float(results(tmp_path)[0]["product"]) == 1.5
