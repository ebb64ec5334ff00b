"""The JSON Schema that ``titin schema`` prints, for editors: against the corpus of descriptions, and against the keys
that titin's reader knows."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import operator
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..conftest import ROOT, TITIN

jsonschema = pytest.importorskip("jsonschema", reason="the oracle, a package for tests only: requirements-dev.txt")

CORPUS = Path(__file__).parent / "corpus"
WATCHDOG = 300  # seconds; only a hang takes so long
#: What a schema can see: a file that titin refuses for one of these has the wrong keys or types.
STRUCTURE = {"unknown-key", "missing-key", "wrong-type", "version"}


UNKNOWN = "zzqqxx"


class Loader(yaml.SafeLoader):
    """YAML 1.2 as editors read it: true and false are the only truth values, and 1:30 is a text."""


Loader.yaml_implicit_resolvers = {
    letter: [
        (tag, pattern)
        for tag, pattern in pairs
        if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int")
    ]
    for letter, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("true|True|TRUE|false|False|FALSE"), list("tTfF"))
Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?\d+$|0x[\da-fA-F]+$"), list("-+0123456789"))
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)[eE][-+]?\d+$"), list("-+.0123456789")
)


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    done = subprocess.run([TITIN, "schema"], capture_output=True, text=True, check=True, timeout=WATCHDOG)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def validator(schema) -> Any:
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def errors(validator: Any, text: str) -> list[str]:
    found = validator.iter_errors(yaml.load(text, Loader))
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in found]


def described(pages: list[Path]) -> list[Any]:
    """The descriptions in documents."""
    found = []
    for page in pages:
        blocks = re.findall(r"^```yaml[^\n]*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        texts = [text for text in blocks if text.startswith("ymmsl_version:")]
        found += [pytest.param(text, id=f"{page.name}-{number}") for number, text in enumerate(texts)]
    return found


def files(*patterns: str) -> list[Any]:
    """Descriptions of the tree that are whole files."""
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True).stdout.split()
    return [pytest.param((ROOT / name).read_text(), id=name) for name in listed]


VALID = files("tests/model/corpus/good/*.ymmsl", "examples/*.ymmsl", "miniapps/*.ymmsl", "tests/adoption/*.ymmsl")


@pytest.mark.parametrize("text", [*VALID, *described([ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))])])
def test_what_titin_accepts_is_valid(text, validator):
    assert not errors(validator, text)


def codes(path: Path) -> set[str]:
    """The problems that comments in a wrong file announce."""
    announced = re.findall(r"# titin: ([a-z, -]+)", path.read_text())
    return {code.strip() for codes in announced for code in codes.split(",")}


WRONG = sorted(path for path in (CORPUS / "bad").rglob("*.ymmsl") if codes(path) & STRUCTURE)


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_wrong_keys_and_types_are_found(path, validator):
    # An editor shows itself what is no YAML.
    with contextlib.suppress(yaml.YAMLError):
        assert errors(validator, path.read_text()), codes(path)


def example() -> dict[str, Any]:
    """The listings of docs/description.md as one description, with what they lack."""
    whole: dict[str, Any] = {}
    for case in described([ROOT / "docs/description.md"]):
        for section, entries in yaml.load(case.values[0], Loader).items():
            whole[section] = whole.get(section, {}) | entries if isinstance(entries, dict) else entries
    whole["titin"]["ensemble"] = {"micro": {"allow_failures": 1, "retry": 1, "at_once": 2}}
    return whole


def places(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield (*at, key)
        yield from places(value, (*at, key))


def changed(whole: Any, at: tuple[Any, ...], value: Any) -> Any:
    whole = copy.deepcopy(whole)
    *above, last = at
    functools.reduce(operator.getitem, above, whole)[last] = value
    return whole


@pytest.mark.parametrize("value", [None, 1.5, "text", ["a"], [[1.0]], {UNKNOWN: 1}, True, 0], ids=str)
def test_titin_and_the_schema_refuse_the_same_values(value, validator, tmp_path):
    """This value in each place of a description in turn: titin refuses what the schema refuses, and the reverse if
    a schema can see the error."""
    whole = example()

    def differs(place: tuple[Any, ...]) -> str | None:
        text = json.dumps(changed(whole, place, value))
        path = tmp_path / f"{abs(hash(place))}.ymmsl"
        path.write_text(text)
        done = subprocess.run([TITIN, "check", "--json", path], capture_output=True, text=True, timeout=WATCHDOG)
        problems = [it["code"] for it in json.loads(done.stdout)["problems"] if it["severity"] == "error"]
        found = errors(validator, text)
        if (found and not problems) or (not found and STRUCTURE & set(problems)):
            return f"{place}: schema: {found}, titin: {problems}"
        return None

    tried = [place for place in places(whole) if place[0] != "ymmsl_version"]
    assert len(tried) > 100
    with ThreadPoolExecutor(2) as pool:
        assert [found for found in pool.map(differs, tried) if found] == []


#: A place in a description for each mapping with fixed keys, by its definition in the schema; `%` stands for an unknown
#: key.
PLACES = {
    "v02": "%",
    "model": "models: {m: {%}}",
    "component": "models: {m: {components: {a: {%}}}}",
    "listed_component": "models: {m: {components: [{name: a, %}]}}",
    "ports": "models: {m: {components: {a: {ports: {%}}}}}",
    "timeline": "models: {m: {components: {a: {ports: {timeline b: {%}}}}}}",
    "conduits/anyOf/1/items": "models: {m: {conduits: [{sender: a.o, receiver: b.i, %}]}}",
    "program": "programs: {p: {executable: x, %}}",
    "supported_settings/additionalProperties/anyOf/2": "programs: {p: {supported_settings: {k: {type: int, %}}}}",
    "hosted/anyOf/0": "programs: {p: {titin: {bmi: x, %}}}",
    "hosted/anyOf/1": "programs: {p: {titin: {host: h, function: 'a:b', %}}}",
    "resources/additionalProperties": "resources: {m.a: {threads: 1, %}}",
    "checkpoints": "checkpoints: {%}",
    "checkpoint_rule": "checkpoints: {wallclock_time: [{every: 1, %}]}",
    "titin": "titin: {%}",
    "scales": "titin: {scales: {a: {%}}}",
    "stage": "titin: {stage: {a: {%}}}",
    "ensemble": "titin: {ensemble: {a: {%}}}",
    "filter": "titin: {filters: {f: {python: 'a:b', %}}}",
    "link": "titin: {links: {a: {%}}}",
    "buffer": "titin: {buffer: {default: {%}}}",
    "pattern": "titin: {fields: {a.b: {%}}}",
    "pattern_side": "titin: {fields: {a.b: {sender: {%}}}}",
    "host": "titin: {hosts: {h: {%}}}",
    "batch_job": "titin: {hosts: {h: {start: {batch: slurm, time: 2 h, %}}}}",
    "site": "titin: {sites: {s: {relay: 'h:1', %}}}",
    "v01": "ymmsl_version: v0.1\n%",
    "model_v01": "ymmsl_version: v0.1\nmodel: {name: m, %}",
    "component_v01/anyOf/1": "ymmsl_version: v0.1\nmodel: {name: m, components: {a: {%}}}",
    "listed_component_v01": "ymmsl_version: v0.1\nmodel: {name: m, components: [{name: a, %}]}",
    "ports_v01": "ymmsl_version: v0.1\nmodel: {name: m, components: {a: {ports: {%}}}}",
    "program_v01/anyOf/2": "ymmsl_version: v0.1\nimplementations: {p: {executable: x, %}}",
}


@pytest.mark.parametrize("place", PLACES)
def test_the_keys_are_those_that_the_reader_knows(place, schema, tmp_path):
    """The reader lists the keys that it knows beside an unknown one. A new key without a schema fails here."""
    hint = unknown(place, UNKNOWN, tmp_path)
    assert hint and hint.startswith("known here: "), hint
    known, more = set(re.findall(r'"([^"]+)"', hint)), re.search(r"and (\d+) more$", hint)
    ours = keys(schema, place)
    assert known <= set(ours), place
    assert len(known) + int(more[1] if more else 0) == len(ours), f"the reader knows other keys of {place}: {hint}"
    for key in set(ours) - known:
        assert unknown(place, key, tmp_path) is None, f"the reader does not know {key}"


def unknown(place: str, key: str, folder: Path) -> str | None:
    """What the reader advises about this key at this place; None if it knows the key."""
    text = PLACES[place].replace("%", f"{key}: 1")
    text = text if text.startswith("ymmsl_version") else f"ymmsl_version: v0.2\n{text}"
    (folder / "model.ymmsl").write_text(text + "\n")
    command = [TITIN, "check", "--json", folder / "model.ymmsl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG)
    problems = json.loads(done.stdout)["problems"]
    hints = [str(it["hint"]) for it in problems if it["code"] == "unknown-key" and f'"{key}"' in it["what"]]
    return hints[0] if hints else None


def keys(schema: dict[str, Any], place: str) -> list[str]:
    node: Any = schema["definitions"]
    for step in place.split("/"):
        node = node[int(step)] if isinstance(node, list) else node[step]
    return list(node["properties"])


def test_every_mapping_of_the_schema_is_compared(schema):
    """A mapping with fixed keys is in the list of places, but for `buffer`, whose only fixed key is `default`."""
    found = set()

    def look(node: Any, path: list[str]) -> None:
        if isinstance(node, dict):
            if node.get("additionalProperties") is False:
                found.add("/".join(path))
            for key, value in node.items():
                look(value, [*path, key])
        elif isinstance(node, list):
            for place, value in enumerate(node):
                look(value, [*path, str(place)])

    look(schema["definitions"], [])
    assert found - {"titin/properties/buffer"} == set(PLACES)
