#!/usr/bin/env python3
"""Makes what runs of both x86-64 and aarch64 programs need, on a machine with an x86-64 processor: in build/aarch64.

The programs for aarch64 run under an emulator (qemu-user), beside the programs of this machine. Made are a system of
arm64 libraries, in which nothing is ever started by itself, and in it the package titin: libtitin and the Python
extension, compiled here for aarch64, with the files of the installed package that are the same for every processor.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = "aarch64-unknown-linux-gnu"
TRIPLE = "aarch64-linux-gnu"
FOLDER = ROOT / "build/aarch64"
#: The arm64 system.
SYSTEM = FOLDER / "system"
#: For PYTHONPATH: the Python packages of the arm64 system.
PACKAGES = SYSTEM / "python"
#: The package titin for aarch64, with the folders `include`, `lib` and `fortran`.
PREFIX = PACKAGES / "titin"
EMULATOR = "qemu-aarch64-static"
#: What starts a program for aarch64.
EMULATED = (EMULATOR, "-L", str(SYSTEM))
#: Commands or files, and the Debian packages that have them.
NEEDED = {
    EMULATOR: "qemu-user-static",
    f"{TRIPLE}-gcc": f"gcc-{TRIPLE}",
    f"{TRIPLE}-g++": f"g++-{TRIPLE}",
    f"{TRIPLE}-gfortran": f"gfortran-{TRIPLE}",
    f"/usr/{TRIPLE}/lib/libc.so": "libc6-dev-arm64-cross",
    "mmdebstrap": "mmdebstrap",
}
#: The packages of the arm64 system, which bring those that they depend on.
INSIDE = ("libc6", "libgfortran5", "libstdc++6", "libmpich-dev", "python3-minimal", "libpython3-stdlib")
#: Python packages of the arm64 system, in the versions of requirements-dev.txt.
PYTHON = ("numpy", "PyYAML", "ml_dtypes", "mpi4py")
#: The profile dev, but sooner compiled: nothing here is measured. Crates that run in the compiler are as always, so
#: they are not compiled again.
QUICK = (
    "--config=profile.dev.opt-level=0",
    "--config=profile.dev.debug=false",
    "--config=profile.dev.package.ring.opt-level=0",
    "--config=profile.dev.package.zstd-sys.opt-level=0",
)
#: The crates whose unit tests run under the emulator.
CRATES = ("titin-wire", "titin-array", "titin-transport")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="a wheel for aarch64, in place of a library that is compiled")
    parser.add_argument(
        "--tests", action="store_true", help="run the unit tests of some crates under the emulator instead"
    )
    options = parser.parse_args()

    lacking = missing() or make_system()
    if lacking:
        print(f"aarch64: left out, for want of {', '.join(lacking)}", file=sys.stderr)
        # Where all tests count, nothing is left out.
        sys.exit("CI" in os.environ)
    if options.tests:
        test()
    elif options.wheel:
        install_wheel(options.wheel.resolve())
    else:
        build()


def missing() -> list[str]:
    """What is missing here, once what can be installed is installed."""
    if platform.machine() != "x86_64":
        return ["a machine with an x86-64 processor"]
    if not all(map(found, NEEDED)):
        succeeds("tools/packages.sh", *map(":".join, NEEDED.items()))
    if not rust_library().exists() and shutil.which("rustup"):
        succeeds("rustup", "target", "add", TARGET)
    lacking = [package for command, package in NEEDED.items() if not found(command)]
    return lacking + ([] if rust_library().exists() else [f"Rust's standard library for {TARGET}"])


def found(command: str) -> bool:
    return bool(shutil.which(command)) or Path(command).exists()


def rust_library() -> Path:
    """The folder of Rust's standard library for aarch64."""
    command = ["rustc", "--print", "sysroot"]
    sysroot = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    return Path(sysroot, "lib/rustlib", TARGET)


def make_system() -> list[str]:
    """Makes the arm64 system, unless it is there: of the release of Debian that this machine has, since the compilers'
    libraries are those of the release. Returns what could not be had."""
    wanted = json.dumps([release(), INSIDE, pinned()])
    made = SYSTEM / ".made-of"
    if made.exists() and made.read_text() == wanted:
        return []
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    # Nothing of the system is run: its packages are unpacked.
    command = ["mmdebstrap", "--quiet", "--variant=extract", "--architectures=arm64", "--skip=check/qemu"]
    if not succeeds(*command, f"--include={','.join(INSIDE)}", release(), str(SYSTEM), *mirror()):
        return ["Debian packages for arm64"]
    for folder in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man"):
        shutil.rmtree(SYSTEM / folder, ignore_errors=True)
    # The name by which programs that serve any MPICH ask for the library.
    library = next(SYSTEM.glob(f"usr/lib/{TRIPLE}/libmpich.so.*"))
    library.with_name("libmpi.so.12").symlink_to(library.name)
    if not pip(*pinned()):
        return ["Python packages for aarch64"]
    made.write_text(wanted)
    return []


def release() -> str:
    """The name of this machine's release of Debian."""
    return platform.freedesktop_os_release()["VERSION_CODENAME"]


def mirror() -> list[str]:
    """The mirror of Debian that apt uses here, or MIRROR."""
    named = os.environ.get("MIRROR")
    if named:
        return [named]
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Label: Debian"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[:1]


def pinned() -> list[str]:
    """The Python packages of the arm64 system, with their versions."""
    lines = (ROOT / "requirements-dev.txt").read_text().split()
    return [line for line in lines if line.partition("==")[0] in PYTHON]


def python_version() -> str:
    """The version of the arm64 system's Python: `3.11`."""
    (interpreter,) = (one for one in (SYSTEM / "usr/bin").glob("python3.*") if re.fullmatch(r"python3\.\d+", one.name))
    return interpreter.name.removeprefix("python")


def mpich_headers() -> list[Path]:
    """The folders of MPICH's headers and of its Fortran modules."""
    places = {found.parent for name in ("mpi.h", "mpi.mod") for found in (SYSTEM / "usr").rglob(name)}
    return sorted(places)


def pip(*packages: str) -> bool:
    """Unpacks Python packages in the arm64 system; returns whether they could be had."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--upgrade"]
    command += ["--target", str(PACKAGES), "--only-binary=:all:", "--no-deps", "--python-version", python_version()]
    for platform_tag in ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64"):
        command += ["--platform", platform_tag]
    return succeeds(*command, *packages)


def install_wheel(wheel: Path) -> None:
    """Unpacks a wheel of titin in the arm64 system."""
    shutil.rmtree(PREFIX, ignore_errors=True)
    if not pip(str(wheel)):
        sys.exit(f"aarch64: {wheel} is no wheel for aarch64 and Python {python_version()}")


def cargo(*command: str, words: tuple[str, ...] = (), **variables: str) -> None:
    """Has cargo do something for aarch64. The words go behind the options."""
    name = TARGET.replace("-", "_")
    environment = {
        f"CARGO_TARGET_{name.upper()}_LINKER": f"{TRIPLE}-gcc",
        f"CARGO_TARGET_{name.upper()}_RUNNER": " ".join(EMULATED),
        f"CC_{name}": f"{TRIPLE}-gcc",
        f"AR_{name}": f"{TRIPLE}-ar",
        "PYO3_CROSS_PYTHON_VERSION": python_version(),
        "PYO3_CROSS_LIB_DIR": str(SYSTEM / "usr/lib"),
        "TITIN_LIB_DIR": str(output()),
    }
    if not succeeds("cargo", *command, "--locked", "--target", TARGET, *QUICK, *words, **environment, **variables):
        sys.exit(f"aarch64: cargo {' '.join(command)} failed")


def output() -> Path:
    """The folder in which cargo puts what it has built for aarch64."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
    return target / TARGET / "debug"


def build() -> None:
    """Compiles libtitin and the Python extension, and puts the package together."""
    # Programs link the shared library, so the static one is not made.
    cargo("rustc", "-p", "titin-capi", "--crate-type", "cdylib")
    cargo("build", "-p", "titin-python")
    # The rest is the same for every processor.
    installed = Path(sysconfig.get_path("purelib"), "titin")
    if not installed.exists():
        sys.exit("aarch64: the package titin is not installed beside this Python: make build")
    shutil.rmtree(PREFIX, ignore_errors=True)
    shutil.copytree(installed, PREFIX, ignore=shutil.ignore_patterns("__pycache__", "lib", "*.so"))
    (PREFIX / "lib").mkdir()
    shutil.copy2(output() / "libtitin.so", PREFIX / "lib")
    shutil.copy2(output() / "lib_core.so", PREFIX / "_core.abi3.so")


def test() -> None:
    """Runs the unit tests of some crates under the emulator, with fewer random cases than without it."""
    crates = [word for crate in CRATES for word in ("-p", crate)]
    fewer = {"PROPTEST_CASES": "16", "TITIN_SCHEDULES": "100"}
    # The skipped test takes minutes. Its statistics do not depend on the processor.
    cargo("test", "--lib", *crates, words=("--", "--skip", "every_rank_gets_about_the_same_share"), **fewer)


def succeeds(*command: str, **environment: str) -> bool:
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False).returncode == 0


if __name__ == "__main__":
    main()
