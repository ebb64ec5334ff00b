"""The page in a browser: what is on it, saved and live, and that no text of a run becomes a part of it."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import titin
from titin.model import Model

from ..conftest import ROOT, WATCHDOG, needs
from .conftest import pair, save

BROWSER = "chromium"

#: Text that would change the title, if it were markup.
HOSTILE = (
    "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\"><!-- {script}"
)


def document(address: str, folder: Path, seconds: int = 6) -> str:
    """The document that a browser makes of a page after some seconds of the browser's clock, which skips waits."""
    needs(BROWSER)
    done = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder / 'browser'}",
            f"--virtual-time-budget={seconds * 1000}",
            "--dump-dom",
            address,
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=WATCHDOG,
    )
    return done.stdout


def shown(document: str, section: str) -> str:
    """The text of a section, without markup."""
    found = re.search(rf'<section id="{section}"( hidden="")?.*?</section>', document, re.DOTALL)
    assert found, document
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", found[0])).split()) if not found[1] else ""


def test_a_saved_page_has_everything(tmp_path):
    run = pair(tmp_path, HOSTILE)
    with (run / "titin_manager.log").open("a") as log:
        log.write(HOSTILE + "\n")
    text = save(run, tmp_path / "page.html")
    assert (text.count("<script"), text.count("<img")) == (2, 0)
    found = document((tmp_path / "page.html").as_uri(), tmp_path)
    assert "<title>pair: done</title>" in found
    assert '<span id="phase" class="pill done" role="status">done</span>' in found
    assert shown(found, "report") == ""
    assert re.search(r"component instances state .* sender 1 done 3.5 computes .* 1 .*16 B", shown(found, "components"))
    assert re.search(r"sender.out receiver.in 1 (inproc|shm) 1 16 B", shown(found, "conduits"))
    assert HOSTILE in html.unescape(found)
    assert "of 2" in shown(found, "instances")


def test_a_live_page_follows_the_run(live, view, tmp_path):
    run = live(40)
    server = view(run.directory)
    server.enter()
    server.until(lambda state: sum(one["state"] == "waiting" for one in state["instances"]) == 40)
    # The server looks at the run at most once in 0.7 s.
    found = document(view(run.directory).link, tmp_path, seconds=120)
    assert "<title>ensemble: running</title>" in found
    components = shown(found, "components")
    assert re.search(r"member 40 40 waiting .* 40 for driver.out, on member.in", components), components
    assert "at most" in shown(found, "history")
    assert '<canvas id="map" role="img" aria-label="the states of 41 instances: 40 waiting, 1 running"' in re.sub(
        r' (width|height|style)="[^"]*"', "", found
    )
    # A browser that comes second gets the text alone.
    assert "The link works once" in document(server.link, tmp_path)


def test_a_thousand_instances_are_few_rows(live, tmp_path):
    run = live(1000)
    run.finish()
    text = save(run.directory, tmp_path / "page.html")
    assert len(text) < 1_500_000
    found = document((tmp_path / "page.html").as_uri(), tmp_path)
    assert re.search(r"member 1,000 1,000 done", shown(found, "components"))
    assert "the first 100 of 1,001" in shown(found, "instances")
    assert found.count("<tr>") < 120


def test_a_run_is_a_widget_in_jupyter(tmp_path):
    model = Model("alone")
    model.component("one")
    run = titin.run(model, {"one": lambda instance: instance.reuse()}, run_dir=tmp_path / "run", quiet=True)
    frame = run._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts" title="The run in ')
    (tmp_path / "notebook.html").write_text(f"<title>notebook</title>{frame}")
    found = document((tmp_path / "notebook.html").as_uri(), tmp_path)
    assert "<title>notebook</title>" in found
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1])
    (tmp_path / "page.html").write_text(page)
    assert "<title>alone: done</title>" in document((tmp_path / "page.html").as_uri(), tmp_path)


def test_the_listing_of_the_page_in_the_documentation(tmp_path, monkeypatch, capfd):
    [listing] = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/view.md").read_text(), re.MULTILINE | re.DOTALL)
    model = Model("alone")
    model.component("one", "one", o_f="out")
    model.component("two", "two", f_init="in")
    model.conduit("one.out", "two.in")
    for name, ports, call in [
        ("one", "o_f='out'", "send('out', 1.5, timestamp=0.0)"),
        ("two", "f_init='in'", "receive('in')"),
    ]:
        program = f"import titin\nwith titin.Instance({ports}) as i:\n    while i.reuse():\n        i.{call}\n"
        (tmp_path / f"{name}.py").write_text(program)
        model.program(name, sys.executable, args=[str(tmp_path / f"{name}.py")])
    model.write(tmp_path / "model.ymmsl")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    *lines, last = listing.splitlines()
    exec("\n".join(lines), names)
    assert eval(last, names)._repr_html_().startswith("<iframe")
    assert names["run"].profile()["conduits"][0]["from"] == "one.out"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("quiet", [False, True])
def test_a_run_object_has_its_profile_and_results(tmp_path, capfd, quiet):
    model = Model("alone")
    model.component("one", o_f="out")
    model.component("two", f_init="in")
    model.conduit("one.out", "two.in")

    def one(instance):
        while instance.reuse():
            instance.send("out", 1.0, timestamp=0.0)

    def two(instance):
        while instance.reuse():
            instance.receive("in")

    run = titin.run(model, {"one": one, "two": two}, run_dir=tmp_path / "run", quiet=quiet)
    assert [found["name"] for found in run.profile()["instances"]] == ["one", "two"]
    assert run.profile()["conduits"][0]["messages"] == 1
    assert run.results() == {}
    (run.directory / "results/one").mkdir(parents=True)
    assert run.results() == {"one": run.directory / "results/one"}
    output = capfd.readouterr()
    assert output.out == ""
    assert (output.err == "") == quiet


def test_a_quiet_run_says_in_its_exception_why_it_could_not_begin(tmp_path, capfd):
    model = Model("alone")
    model.component("one")
    (tmp_path / "run/instances").mkdir(parents=True)
    with pytest.raises(titin.UsageError, match="holds an earlier run: choose another --run-dir"):
        titin.run(model, {"one": lambda instance: instance.reuse()}, run_dir=tmp_path / "run", quiet=True)
    assert capfd.readouterr().err == ""
    with pytest.raises(titin.UsageError, match="quiet and verbose exclude each other"):
        titin.run(model, {}, quiet=True, verbose=True)
