"""The recipes in packaging/: each is read by its tool, where there is one here, and has the version of Cargo.toml."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from rattler_build import Stage0Recipe, VariantConfig
from spython.main.parse.parsers import SingularityParser

from ..conftest import ROOT, needs

PACKAGING = ROOT / "packaging"
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
PROJECT = tomllib.loads((ROOT / "bindings/python/pyproject.toml").read_text())["project"]
RUST = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
MATURIN = re.search(r"^maturin==(\d+\.\d+)", (ROOT / "requirements-build.txt").read_text(), re.MULTILINE)[1]


def test_debian_has_the_version() -> None:
    needs("dpkg-parsechangelog")
    command = ["dpkg-parsechangelog", "-l", PACKAGING / "debian/changelog", "-S", "Version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert re.fullmatch(rf"{re.escape(VERSION)}-\d+", version)


def test_conda_renders_with_the_version() -> None:
    recipe = Stage0Recipe.from_yaml((PACKAGING / "conda/recipe.yaml").read_text())
    (variant,) = recipe.render(
        VariantConfig({"c_compiler": ["gcc"], "rust_compiler": ["rust"], "c_stdlib": ["sysroot"]})
    )
    rendered = variant.recipe.to_dict()
    assert rendered["package"] == {"name": "titin", "version": VERSION}
    run = {line.split()[0].lower(): line.partition(" ")[2] for line in map(str, rendered["requirements"]["run"])}
    assert run.pop("python") == PROJECT["requires-python"]
    assert {f"{name}{bound}" for name, bound in run.items()} == {line.lower() for line in PROJECT["dependencies"]}


def test_spack_has_the_version_and_the_dependencies() -> None:
    """Spack itself is not here, so that the recipe has never been built."""
    recipe = PACKAGING / "spack/packages/titin/package.py"
    tree = ast.parse(recipe.read_text())
    (package,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    calls = [node.value for node in package.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    said = [(call.func.id, ast.literal_eval(call.args[0])) for call in calls if isinstance(call.func, ast.Name)]
    assert ("version", VERSION) in said
    lower = PROJECT["requires-python"].removeprefix(">=")
    assert ("extends", f"python@{lower}:") in said
    for dependency in PROJECT["dependencies"]:
        name, bound = dependency.lower().split(">=")
        assert ("depends_on", f"py-{name}@{bound}:") in said
    assert ("depends_on", f"rust@{RUST}:") in said and ("depends_on", f"py-maturin@{MATURIN}") in said
    assert yaml.safe_load((PACKAGING / "spack/repo.yaml").read_text())["repo"]["namespace"] == "titin"


def test_the_dockerfile_has_no_faults() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, PACKAGING / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_container_of_apptainer_is_that_of_docker() -> None:
    recipe = SingularityParser(str(PACKAGING / "titin.def")).parse()["spython-base"]
    docker = (PACKAGING / "Dockerfile").read_text()
    assert f"FROM {recipe.fromHeader}\n" in docker
    assert f"org.opencontainers.image.version {VERSION}" in recipe.labels
    for packages in re.findall(r"--no-install-recommends ([\w ]+?)(?: \\)?\n", docker):
        assert any(packages in line for line in recipe.install)
    assert recipe.test and recipe.cmd == 'exec titin "$@"'


@pytest.mark.parametrize(
    "script", sorted([*PACKAGING.glob("*.sh"), *PACKAGING.glob("try-*/*.sh"), PACKAGING / "debian/arrange"])
)
def test_the_scripts_are_read_by_a_shell(script: Path) -> None:
    shell = "bash" if "bash" in script.read_text().partition("\n")[0] else "sh"
    done = subprocess.run([shutil.which(shell) or shell, "-n", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_page_lists_every_recipe() -> None:
    page = (PACKAGING / "README.md").read_text()
    for entry in PACKAGING.iterdir():
        if entry.name not in ("README.md", "Dockerfile.dockerignore", "__pycache__"):
            assert f"]({entry.name}" in page, f"packaging/README.md does not name {entry.name}"
