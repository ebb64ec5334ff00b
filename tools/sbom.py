#!/usr/bin/env python3
"""Lists the Rust crates in the binaries of a wheel, twice: for tools, an SBOM in CycloneDX; for people, their licences.

A crate is in a binary if the binary's crate depends on it, itself or by others, and it is more than a macro.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parents[1]
#: The crates whose binaries a wheel has.
BINARIES = ("titin-capi", "titin-cli", "titin-host", "titin-relayd", "titin-python")
LICENCE = re.compile(r"(UN)?LICEN[CS]E|COPYING|COPYRIGHT|NOTICE", re.IGNORECASE)
SBOM = "titin.cdx.json"
LICENCES = "THIRD-PARTY-LICENSES.txt"

Crate = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="x86_64-unknown-linux-gnu", help="the machine that the binaries are for")
    parser.add_argument("folder", type=Path, help=f"where {SBOM} and {LICENCES} are written")
    options = parser.parse_args()
    write(options.folder, options.target)


def write(folder: Path, target: str) -> None:
    """Writes both files into a folder."""
    crates = crates_in_binaries(target)
    (folder / SBOM).write_text(sbom(crates))
    (folder / LICENCES).write_text(licences(crates))


def crates_in_binaries(target: str) -> dict[str, tuple[Crate, list[str]]]:
    """By their id the crates in the binaries, each with the ids of those that it depends on."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    crates = {crate["id"]: crate for crate in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    open_ids = [crate["id"] for crate in metadata["packages"] if crate["name"] in BINARIES]
    assert len(open_ids) == len(BINARIES), "each binary has a crate"
    found: dict[str, tuple[Crate, list[str]]] = {}
    while open_ids:
        crate = open_ids.pop()
        if crate in found:
            continue
        needed = [
            dependency["pkg"]
            for dependency in nodes[crate]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]) and not is_macro(crates[dependency["pkg"]])
        ]
        found[crate] = (crates[crate], needed)
        open_ids += needed
    return dict(sorted(found.items(), key=lambda pair: (pair[1][0]["name"], pair[1][0]["version"])))


def is_macro(crate: Crate) -> bool:
    return any("proc-macro" in target["kind"] for target in crate["targets"])


def sbom(crates: dict[str, tuple[Crate, list[str]]]) -> str:
    """The SBOM in JSON. It is the same for the same crates, but for its time, which SOURCE_DATE_EPOCH sets."""
    digests = checksums()
    components = {name: component(crate, digests) for name, (crate, _) in crates.items()}
    version = next(crate["version"] for crate, _ in crates.values() if crate["name"] == "titin-capi")
    titin = Component(
        name="titin",
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref="titin",
        purl=PackageURL("pypi", name="titin", version=version),
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
    )
    bom = Bom(
        components=components.values(),
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, " ".join(label(crate) for crate, _ in crates.values())),
    )
    bom.metadata.component = titin
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    bom.metadata.timestamp = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    bom.register_dependency(titin, [components[i] for i, (crate, _) in crates.items() if crate["name"] in BINARIES])
    for name, (_, needed) in crates.items():
        bom.register_dependency(components[name], [components[other] for other in needed])
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def label(crate: Crate) -> str:
    return f"{crate['name']} {crate['version']}"


def checksums() -> dict[tuple[str, str], str]:
    """The SHA-256 of each crate's file, by name and version."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(p["name"], p["version"]): p["checksum"] for p in lock["package"] if "checksum" in p}


def component(crate: Crate, digests: dict[tuple[str, str], str]) -> Component:
    """What the SBOM says of a crate."""
    name, version = crate["name"], crate["version"]
    digest = digests.get((name, version))
    licence = crate["license"]
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=f"{name}@{version}",
        description=crate["description"],
        purl=PackageURL("cargo", name=name, version=version) if digest else None,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else [],
        licenses=[LicenseFactory().make_from_string(licence.replace("/", " OR "))] if licence else [],
        external_references=[ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(crate["repository"]))]
        if crate["repository"]
        else [],
    )


def licences(crates: dict[str, tuple[Crate, list[str]]]) -> str:
    """The licences of all crates that are not titin's own, each text once, after the crates that have it."""
    texts: dict[str, tuple[str, list[str]]] = {}
    listed = []
    for crate, _ in crates.values():
        if crate["source"] is None:
            continue
        name = label(crate)
        listed.append(f"{name}: {crate['license']}")
        for file in sorted(Path(crate["manifest_path"]).parent.rglob("*")):
            if LICENCE.match(file.name) and file.is_file() and file.suffix not in (".rs", ".py"):
                text = file.read_text(errors="replace").strip()
                digest = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()
                names = texts.setdefault(digest, (text, []))[1]
                if name not in names:
                    names.append(name)
    line = "-" * 80
    parts = ["The binaries of titin have in them these crates:", "", *listed]
    for text, names in texts.values():
        parts += ["", line, ", ".join(names), line, "", text]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
