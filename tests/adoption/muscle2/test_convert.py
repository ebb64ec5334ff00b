"""``titin convert``: CxA files in both syntaxes, whose descriptions ``titin check`` accepts, and wrong files."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from ...conftest import TITIN, needs
from .conftest import WATCHDOG, Build

CXA = Path(__file__).parent / "cxa"


def convert(file: Path, *options: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TITIN, "convert", file, *options],
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
        env=os.environ | more,
    )


def checked(name: str, folder: Path) -> tuple[dict, str, str]:
    """The description that is made of a file, its text, and the warnings; ``titin check`` accepts it."""
    needs("ruby")
    shutil.copy(CXA / name, folder)
    path = folder / "model.ymmsl"
    done = convert(folder / name, "-o", path)
    assert done.returncode == 0, done.stderr
    return accepted(path), path.read_text(), done.stderr


def accepted(path: Path) -> dict:
    """A description, which ``titin check`` accepts."""
    check = subprocess.run([TITIN, "check", path], capture_output=True, text=True, timeout=WATCHDOG)
    assert check.returncode == 0, check.stdout + check.stderr + path.read_text()
    return yaml.safe_load(path.read_text())


def test_the_newer_syntax(tmp_path):
    made, text, warnings = checked("pair.cxa.rb", tmp_path)
    (model,) = made["models"].values()
    assert model["components"]["macro"]["ports"] == {"o_i": ["state_out"], "s": ["state_in"]}
    # The micro model's 10 ms are within the second of a step of the macro model.
    assert model["components"]["micro"]["ports"] == {"o_f": ["final"], "f_init": ["initial"]}
    assert "matching_timelines" not in model
    assert model["conduits"] == {
        "macro.state_out": "scale(2.0) scale(0.5) zstd micro.initial",
        "micro.final": "macro.state_in",
    }
    assert made["programs"] == {
        "macro": {"executable": "/opt/models/macro", "args": ["-v", "two words"]},
        "micro": {"executable": "/opt/models/micro"},
    }
    expected = {"max_timesteps": 4, "default_dt": 1, "label": "yes", "numbers": [1, 2.5], "macro.k": 2.5}
    assert made["settings"] == expected | {"micro.T": "10 ms", "micro.dt": "1 ms"}
    assert '# WARNING: "odd-name": 3' in text and 'words: ["a", "b"]' in warnings


def test_the_older_syntax(tmp_path):
    made, text, warnings = checked("legacy.cxa.rb", tmp_path)
    (model,) = made["models"].values()
    assert model["conduits"] == {"w.data": "scale(0.5) r.data", "w.more": "r.more", "w.writer": "w.reader"}
    assert model["matching_timelines"] == {"w": ["r"]}
    assert made["programs"]["w"] == {"executable": "$MUSCLE_HOME/share/writer"}
    assert made["settings"] == {"max_timesteps": 3, "w.dt": 1}
    assert "the Java class examples.simplejava.ConsoleWriter is not run by titin" in warnings
    assert "filter 'drop_3' at the sender has no equal in titin" in warnings
    assert "some.jar is not needed" in text
    assert "exit 1" in made["programs"]["r"]["script"]


def test_loops_mappers_terminals_and_other_kinds(tmp_path):
    made, _, warnings = checked("many.cxa.rb", tmp_path)
    (model,) = made["models"].values()
    components = model["components"]
    assert [components[f"node_{i}"]["ports"] for i in range(4)] == [{"o_i": ["right"], "s": ["left"]}] * 4
    assert made["programs"]["node_2"]["args"] == ["node.py", "--place", "2"]
    assert components["copies"]["implementation"] == "titin.duplicator"
    assert components["sink"]["implementation"] == components["file"]["implementation"] == "titin.sink"
    assert components["source"]["implementation"] == "titin.source"
    assert made["settings"] == {
        "steps": 3,
        "source.file": "in.dat",
        "sink.file": "sink.jsonl",
        "file.file": "results.csv",
    }
    assert made["programs"]["solver"] == {"executable": "./solver", "execution_model": "openmpi"}
    assert made["resources"] == {"many.solver": {"mpi_processes": 4}}
    assert "a MATLAB script is not run by titin" in warnings and "filter 'console'" in warnings


def test_a_model_and_an_instance_of_one_name(tmp_path):
    needs("ruby")
    path = tmp_path / "lhc.cxa.rb"
    path.write_text(
        "lhc = NativeInstance.new('lhc', '/bin/true')\nsink = Terminal.new('sink', 'own.BooleanFileSink')\n"
        "sink['file'] = 'mask'\nlhc.couple(sink, 'mask')\n"
    )
    assert convert(path, "-o", tmp_path / "model.ymmsl").returncode == 0
    made = accepted(tmp_path / "model.ymmsl")
    assert list(made["models"]) == ["lhc_model"] and made["settings"] == {"sink.file": "mask.csv"}


def test_a_converted_model_runs(build: Build, tmp_path):
    needs("ruby")
    (tmp_path / "run.cxa.rb").write_text(
        f"sender = NativeInstance.new('macro', '{build('check.cpp')}')\n"
        f"back = NativeInstance.new('peer', '{build('bounce.cpp')}')\n"
        "sender.couple(back, {'type' => 'type', 'out' => 'in'})\nback.couple(sender, {'out' => 'in'})\n"
    )
    assert convert(tmp_path / "run.cxa.rb", "-o", tmp_path / "model.ymmsl").returncode == 0
    command = [TITIN, "run", tmp_path / "model.ymmsl", "--run-dir", tmp_path / "run"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run/instances/macro/stdout.txt").read_text() == "tests passed\n"


WRONG = {
    "a = Instance.new('a', 'x')\nInstance.new('a', 'y')": "instance 'a' is defined twice",
    "Instance.new('a', 'x').couple('b', 'data')": "there is no instance 'b'",
    "a = Instance.new('a', 'x')\na.couple(a, 'data')": "sends and receives on port 'data', and a port has one operator",
    "a = Instance.new('a', 'x')\na.couple(a, 'in-1' => 'out')": "port 'in-1' of a has a name that no port of titin has",
    "cxa.cs.attach('a' => 'b')": "attach has no block",
    "Instance.new('a-b', 'x')\nInstance.new('a_b', 'x')": "two instances would have the name a_b in titin",
    "oh dear(": "syntax error",
    "unknown_helper 3": "unknown_helper",
    "exit 0": "has ended before its last line",
    "1": "defines no instance",
    "Instance.new('a', 'x')['k'] = [1.0, -1.0 / 0.0]": "property 'k' is -Infinity: write a finite number",
    "Instance.new('a', 'x')['k'] = \"\\xff\"": "property 'k' is \"\\xFF\", which is no text in UTF-8",
    "Instance.new(\"a\\xff\", 'x')": "the name of an instance is",
    "a = Instance.new('a', 'x')\na.couple(Instance.new('b', 'y'), \"\\xff\")": "the name of a port is",
    "Instance.new('a', 'x')\nexit! 3": "ruby has ended with exit code 3",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_refused(text, tmp_path):
    needs("ruby")
    path = tmp_path / "wrong.cxa.rb"
    path.write_text(text)
    done = convert(path, "-o", tmp_path / "model.ymmsl")
    assert done.returncode == 2 and WRONG[text] in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "model.ymmsl").exists()


def test_texts_with_line_breaks_stay_in_their_comments(tmp_path):
    needs("ruby")
    path = tmp_path / "odd.cxa.rb"
    path.write_text(
        'a = Instance.new("a\\nb: {", "x\\n  y: [")\nb = NativeInstance.new("b", "/p q/\\"r\\": x", {args: "\'"})\n'
        "a.couple(b, {'out' => 'in'}, [\"odd\\n: [\"])\nadd_libpath \"l\\nm: {\"\nb['text'] = \"two\\nlines: #\"\n"
    )
    assert convert(path, "-o", tmp_path / "model.ymmsl").returncode == 0
    made = accepted(tmp_path / "model.ymmsl")
    assert made["settings"] == {"b.text": "two\nlines: #"}
    assert made["programs"]["b"] == {"executable": '/p q/"r": x', "args": ["'"]}


WORDS = ["on", "off", "yes", "no", "null", "true", "false", "y", "n", "Null", "TRUE", "On", "NO", "None", "nan", "inf"]


def test_words_of_yaml_are_names(tmp_path):
    """Instances, ports, settings and arguments with names that YAML 1.1 or 1.2 reads as other things than texts."""
    needs("ruby")
    path = tmp_path / "Yes.cxa.rb"
    path.write_text(
        f"all = %w[{' '.join(WORDS)}].map {{ |name| NativeInstance.new(name, name, {{ args: [name, '1e3'] }}) }}\n"
        "all.each_cons(2) { |a, b| a.couple(b, {'yes' => 'null'}) }\n"
        f"%w[{' '.join(WORDS)}].each {{ |name| cxa.env[name] = name }}\n"
    )
    assert convert(path, "-o", tmp_path / "model.ymmsl").returncode == 0
    check = subprocess.run([TITIN, "check", tmp_path / "model.ymmsl"], capture_output=True, text=True, timeout=WATCHDOG)
    assert check.returncode == 0, check.stdout + check.stderr + (tmp_path / "model.ymmsl").read_text()
    made = yaml.safe_load((tmp_path / "model.ymmsl").read_text())  # YAML 1.1
    components = made["models"]["Yes"]["components"]
    assert list(components) == list(made["programs"]) == WORDS
    assert [component["implementation"] for component in components.values()] == WORDS
    assert components["off"]["ports"] == {"o_i": ["yes"], "s": ["null"]}
    assert made["models"]["Yes"]["matching_timelines"] == {"on": WORDS[1:]}
    assert made["programs"]["no"] == {"executable": "no", "args": ["no", "1e3"]}
    assert made["settings"] == {word: word for word in WORDS}


ODD = '\x00\x07\x7f\x85\u2028\u2029\ufeff\uffff\U0001f600\xfc\\"'


@pytest.mark.parametrize("locale", ["C.UTF-8", "en_US.ISO-8859-1", "C"])
def test_odd_letters_and_huge_numbers(locale, tmp_path):
    """A text comes through as it is, in any locale, and no letter of it begins a line."""
    needs("ruby")
    path = tmp_path / "odd.cxa.rb"
    written = "".join(f"\\u{{{ord(letter):x}}}" for letter in ODD)
    path.write_text(
        f'a = NativeInstance.new("a", "b")\na["k"] = "{written}"\na["{written}"] = 1\n'
        f'a.couple(NativeInstance.new("{written}", "c"), "x", "{written}")\n'
        'a["most"] = 2**63 - 1\na["more"] = 2**63\na["list"] = [1.5, 10**30]\na["word"] = :on\n'
    )
    environment = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = convert(path, "-o", tmp_path / "model.ymmsl", **environment)
    assert done.returncode == 0, done.stderr
    check = subprocess.run([TITIN, "check", tmp_path / "model.ymmsl"], capture_output=True, text=True, timeout=WATCHDOG)
    assert check.returncode == 0, check.stdout + check.stderr
    text = (tmp_path / "model.ymmsl").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["settings"] == {"a.k": ODD, "a.most": 2**63 - 1, "a.word": "on"}
    assert "# WARNING: a.more: 9223372036854775808 is larger than a setting can be" in text
    assert "# WARNING: a.list: [1.5, 1" in text and done.stderr.count("warning:") == 4, done.stderr
    printed = subprocess.run(
        [TITIN, "convert", path], capture_output=True, timeout=WATCHDOG, env=os.environ | environment
    )
    assert printed.stdout == text.encode()


def test_three_thousand_instances(tmp_path):
    needs("ruby")
    path = tmp_path / "chain.cxa.rb"
    path.write_text(
        'all = (0...3000).map { |i| NativeInstance.new("n#{i}", "./n", { args: i.to_s }) }\n'
        "all.each_cons(2) { |a, b| a.couple(b, {'right' => 'left'}) }\n"
        "puts 'said'\nSTDOUT.puts 'said'\nsystem('echo said')\n"
    )
    done = convert(path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "model.ymmsl").write_text(done.stdout)
    check = subprocess.run([TITIN, "check", tmp_path / "model.ymmsl"], capture_output=True, text=True, timeout=WATCHDOG)
    assert check.returncode == 0 and "3000 instances, 2999 conduits" in check.stdout, check.stdout + check.stderr
    assert "said" not in done.stdout and "said" in done.stderr


def test_a_file_that_hangs_is_ended_with_what_it_has_started(tmp_path):
    needs("ruby")
    path = tmp_path / "slow.cxa.rb"
    path.write_text(f"File.write('{tmp_path}/child', spawn('sleep 1000').to_s)\nsleep")
    done = convert(path, "--timeout", "2")
    assert done.returncode == 2 and "has not ended within 2 s: allow more by --timeout" in done.stderr
    child = Path("/proc") / (tmp_path / "child").read_text() / "stat"
    deadline = time.monotonic() + WATCHDOG
    while child.exists() and child.read_text().split()[2] != "Z":
        assert time.monotonic() < deadline, "the child of the script lives"
        time.sleep(0.01)


def test_without_ruby_it_says_what_to_install(tmp_path):
    done = convert(CXA / "pair.cxa.rb", "--ruby", "no-such-ruby")
    assert done.returncode == 2 and "apt install ruby" in done.stderr


def test_an_output_that_cannot_be_written_is_named(tmp_path):
    needs("ruby")
    done = convert(CXA / "pair.cxa.rb", "-o", tmp_path / "none" / "model.ymmsl")
    assert done.returncode == 2
    assert f"error: {tmp_path}/none/model.ymmsl: No such file or directory" in done.stderr


def test_a_file_that_is_there_stays(tmp_path):
    needs("ruby")
    (tmp_path / "model.ymmsl").write_text("mine")
    done = convert(CXA / "pair.cxa.rb", "-o", tmp_path / "model.ymmsl")
    assert done.returncode == 2 and "is there already" in done.stderr
    assert (tmp_path / "model.ymmsl").read_text() == "mine"
    assert convert(CXA / "pair.cxa.rb", "-o", tmp_path / "model.ymmsl", "--force").returncode == 0
