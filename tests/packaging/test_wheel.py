"""What an index of packages and scanners find in the wheels: metadata, the page, licences, the SBOM."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.metadata import Metadata
from readme_renderer import markdown

from ..conftest import ROOT, TITIN

NAMES = ("titin", "titin-muscle3")
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
#: The part of each page's address that is a path in the sources.
PAGES = "https://github.com/titin/titin/blob/main/"


def installed(name: str) -> importlib.metadata.PathDistribution:
    """What is installed of a distribution; pip has unpacked it from the wheel."""
    found = importlib.metadata.distribution(name)
    assert isinstance(found, importlib.metadata.PathDistribution)
    return found


def info(name: str) -> Path:
    """Its folder of metadata."""
    (record,) = (
        file for file in installed(name).files or () if file.name == "RECORD" and file.parent.suffix == ".dist-info"
    )
    return Path(record.locate()).parent


@pytest.mark.parametrize("name", NAMES)
def test_the_metadata_are_valid_and_say_where_to_look(name: str) -> None:
    metadata = Metadata.from_email((info(name) / "METADATA").read_bytes(), validate=True)
    assert str(metadata.version) == VERSION and str(metadata.requires_python) == ">=3.11"
    assert metadata.license_expression == "Apache-2.0"
    assert set(metadata.project_urls or {}) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert not [line for line in metadata.classifiers or [] if line.startswith("License")], (
        "PEP 639 has the expression alone"
    )
    for minor in range(11, 15):
        assert f"Programming Language :: Python :: 3.{minor}" in (metadata.classifiers or [])


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_shown(name: str) -> None:
    text = (info(name) / "METADATA").read_text().partition("\n\n")[2]
    shown = markdown.render(text)
    assert shown is not None and "<h1" in shown
    for link in re.findall(r'href="([^"]*)"', shown):
        # A heading links to itself.
        assert link.startswith(("https://", "#user-content-")), f"{link} leads nowhere on another site"
        if link.startswith(PAGES):
            assert (ROOT / link.removeprefix(PAGES)).exists(), f"{link} is not in the sources"


@pytest.mark.parametrize("name", NAMES)
def test_the_licences_that_it_names_are_inside(name: str) -> None:
    metadata = Metadata.from_email((info(name) / "METADATA").read_bytes(), validate=True)
    assert "LICENSE" in (metadata.license_files or [])
    for file in metadata.license_files or []:
        assert (info(name) / "licenses" / file).stat().st_size > 1000
    assert (info(name) / "licenses/LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_sbom_lists_the_crates_of_every_binary() -> None:
    text = (info("titin") / "sboms/titin.cdx.json").read_text()
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert error is None, error
    sbom = json.loads(text)
    assert sbom["metadata"]["component"]["version"] == VERSION
    crates = {component["name"]: component for component in sbom["components"]}
    # Of the library, the relay, the command, the extension.
    assert {"ring", "rustls", "libsqlite3-sys", "pyo3", "zstd-sys"} <= set(crates)
    # Of tests, of the build, of macros.
    assert not {"proptest", "loom", "cc", "syn", "serde_derive"} & set(crates)
    locked = {
        (crate["name"], crate["version"]): crate
        for crate in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    }
    for crate in sbom["components"]:
        known = locked[crate["name"], crate["version"]]
        assert [entry["content"] for entry in crate.get("hashes", [])] == [
            known[k] for k in ("checksum",) if k in known
        ]
        assert crate["licenses"]
    assert str(ROOT) not in text, "the paths of this machine are nobody's business"


def test_the_licences_of_the_crates_are_those_of_the_sbom() -> None:
    folder = info("titin")
    text = (folder / "licenses/THIRD-PARTY-LICENSES.txt").read_text()
    for crate in json.loads((folder / "sboms/titin.cdx.json").read_text())["components"]:
        if "purl" in crate:
            assert f"\n{crate['name']} {crate['version']}: " in text
    assert "Copyright (c) 2016-present, Facebook, Inc." in text or "Zstandard" in text, (
        "the C sources in crates have licences"
    )


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = (ROOT / "bindings/python/README.md").read_text()
    for name, text in re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    subprocess.run([TITIN, "run", "model.ymmsl", "--run-dir", "run"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "run/instances/macro/stdout.txt").read_text() == "[8. 8. 8. 8. 8.]\n"


def test_a_wheel_without_a_page_is_refused(tmp_path: Path) -> None:
    """By the check that `make wheel` ends with."""
    wheel = tmp_path / f"titin-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            f"titin-{VERSION}.dist-info/METADATA", f"Metadata-Version: 2.4\nName: titin\nVersion: {VERSION}\n"
        )
    command = [sys.executable, "-m", "twine", "check", "--strict", wheel]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0 and "long_description" in done.stdout
