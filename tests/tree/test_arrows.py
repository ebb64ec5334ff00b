"""Dependencies between crates point one way; ARCHITECTURE.md says which."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

ARROWS = {
    "titin-model": set(),
    "titin-wire": {"titin-model"},
    "titin-transport": {"titin-wire", "titin-model"},
    "titin-runtime": {"titin-transport", "titin-wire", "titin-model"},
    "titin-components": {"titin-runtime"},
    "titin-manager": {"titin-transport", "titin-wire", "titin-model"},
    "titin-cli": {"titin-model", "titin-runtime", "titin-components", "titin-manager"},
    "titin-capi": {"titin-runtime"},
}


def test_no_crate_depends_on_what_it_must_not():
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
    told = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    ours = {package["name"] for package in told["packages"]}
    found = {
        package["name"]: {
            dependency["name"]
            for dependency in package["dependencies"]
            if dependency["name"] in ours and dependency["kind"] != "dev"
        }
        for package in told["packages"]
    }
    assert found.keys() >= ARROWS.keys()
    for name, allowed in ARROWS.items():
        assert found[name] <= allowed, f"{name} depends on {found[name] - allowed}"
    shipped = set().union(*(found[name] for name in found if name != "titin-testkit"))
    assert "titin-testkit" not in shipped
