"""The N-body code: forces, energy and growth are right; no division into parts, ranks and hosts changes a bit."""

from __future__ import annotations

import csv
import math
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ..conftest import WATCHDOG, Copy, needs
from ..native.test_paths import make_key
from ..relays.conftest import free_port
from ..sites.conftest import Hosts, hosts, namespaces  # noqa: F401

Array = NDArray[np.float64]

#: G times the mass of all particles, in the units of the program.
GM = 1.5 / (4 * math.pi)
#: A run in which particles cluster, and change parts and ranks.
SMALL = ("--particles", "16", "--from", "0.05", "--to", "0.4", "--steps", "8")


class Nbody(Copy):
    """The mini-app, and a key for its paths."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.key = make_key(folder)
        self.outputs = 0
        self.made: set[str] = set()

    def make(self, mpi: str = "openmpi") -> Path:
        needs(f"mpicxx.{mpi}", f"mpirun.{mpi}", "fftw-wisdom-to-conf")
        if mpi not in self.made:
            self.call("make", "-j2", f"MPI={mpi}", "CXXFLAGS=-O3 -march=native -Werror")
            self.made.add(mpi)
        return self.folder / "build" / mpi / "nbody"

    def command(self, ranks: int, mpi: str = "openmpi") -> list[str]:
        """The program on so many ranks."""
        program = str(self.make(mpi))
        more = ["--oversubscribe"] if mpi == "openmpi" else []
        return [program] if ranks == 1 else [f"mpirun.{mpi}", *more, "-n", str(ranks), program]

    def output(self) -> Path:
        """A new place for particles."""
        self.outputs += 1
        return self.folder / f"out-{self.outputs}.npy"

    def whole(self, *options: object, ranks: int = 1, mpi: str = "openmpi") -> Path:
        """One program that is all parts; returns the file with the particles."""
        out = self.output()
        self.call(*self.command(ranks, mpi), *options, "--quiet", "--out", out)
        return out

    def begin(
        self, *options: object, ranks: Sequence[int], mpis: Sequence[str]
    ) -> list[tuple[subprocess.Popen[str], Path]]:
        """A program for each part, on this host."""
        ports = [free_port() for _ in ranks]
        started = []
        for part, (count, mpi) in enumerate(zip(ranks, mpis, strict=True)):
            out = self.output()
            own = [
                "--part",
                part,
                *ways(part, [f"127.0.0.1:{port}" for port in ports]),
                "--key",
                self.key,
                "--out",
                out,
            ]
            words = [*self.command(count, mpi), "--parts", len(ranks), "--quiet", *own, *options]
            started.append((start(words, self.folder), out))
        return started

    def parts(self, *options: object, ranks: Sequence[int] = (1, 1), mpis: Sequence[str] = ()) -> list[Path]:
        """The same, until all have ended well; returns the files with the particles, as each part has them."""
        started = self.begin(*options, ranks=ranks, mpis=mpis or ["openmpi"] * len(ranks))
        for program, _ in started:
            said = program.communicate(timeout=WATCHDOG)[0]
            assert program.returncode == 0, said
        return [out for _, out in started]


def start(words: Sequence[object], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(word) for word in words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ways(part: int, addresses: Sequence[str], listen: str = "") -> list[str]:
    """Where a part listens, and which path it opens."""
    count = len(addresses)
    listens = ["--listen", listen or addresses[part]] if count > 2 or part == 0 else []
    opens = ["--open", addresses[(part + 1) % count]] if count > 2 or part == 1 else []
    return [*listens, *opens]


@pytest.fixture(scope="session")
def nbody(tmp_path_factory: pytest.TempPathFactory) -> Nbody:
    app = Nbody.of("miniapps/nbody", tmp_path_factory)
    app.make()
    return app


@pytest.fixture(scope="session")
def reference(nbody: Nbody) -> bytes:
    """The small run, undivided."""
    return nbody.whole(*SMALL).read_bytes()


def same(files: Sequence[Path], reference: bytes) -> None:
    for file in files:
        assert file.read_bytes() == reference, f"{file.name} differs"


def ewald(x: Array, targets: NDArray[np.int64], softening: float) -> tuple[Array, Array]:
    """The accelerations and potentials of these particles by all others and their images, directly (Ewald 1921).

    The nearest image of each particle is softened, as in the program. All particles have the same mass, and GM in all.
    """
    alpha, waves = 8.0, 10
    distance = np.linspace(0, 0.9, 40_001)
    erfc = np.array([math.erfc(alpha * r) for r in distance])
    factor = erfc + 2 * alpha * distance / math.sqrt(math.pi) * np.exp(-((alpha * distance) ** 2))
    acceleration, potential = np.zeros((len(targets), 3)), np.zeros(len(targets))
    for place, target in enumerate(targets):
        d = x - x[target]
        d -= np.round(d)
        r2 = (d**2).sum(axis=1)
        r2[target] = 1
        r, softened = np.sqrt(r2), r2 + softening**2
        force = softened**-1.5 + (np.interp(r, distance, factor) - 1) / r**3
        energy = softened**-0.5 + (np.interp(r, distance, erfc) - 1) / r
        force[target], energy[target] = 0, -2 * alpha / math.sqrt(math.pi)
        acceleration[place] = force @ d
        potential[place] = -energy.sum()
    line = np.arange(-waves, waves + 1)
    all_waves = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    half = all_waves[len(all_waves) // 2 + 1 :]
    half = half[(half**2).sum(axis=1) <= waves**2]
    for some in np.array_split(2 * math.pi * half, len(half) // 100):
        k2 = (some**2).sum(axis=1)
        mass = np.exp(-1j * (some @ x.T)).sum(axis=1)
        wave = np.exp(1j * (x[targets] @ some.T)) * (mass * 8 * math.pi / k2 * np.exp(-k2 / (4 * alpha**2)))
        acceleration += (1j * wave).real @ some
        potential -= wave.real.sum(axis=1)
    potential += len(x) * math.pi / alpha**2
    return acceleration * GM / len(x), potential * GM / len(x)


# ---- The physics ---------------------------------------------------------------------------------


@pytest.mark.parametrize("divided", [False, True])
def test_forces_are_those_of_direct_summation(nbody: Nbody, divided: bool) -> None:
    options = ["--particles", 16, "--steps", 20, "--to", 0.5]
    out = nbody.whole(*options, *(["--parts", 2] if divided else []), ranks=2 if divided else 1)
    particles = np.load(out)
    targets = np.random.default_rng(1).choice(16**3, 400, replace=False)
    exact, _ = ewald(particles[:, :3], targets, 0.03 / 16)
    found = particles[targets, 6:]
    error = np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert np.percentile(error, 50) < 0.003
    assert np.percentile(error, 99) < 0.01
    # Nor are they all too large or too small.
    assert abs((found * exact).sum() / (exact**2).sum() - 1) < 0.002


def test_forces_of_particles_at_random_places(nbody: Nbody) -> None:
    particles = np.load(nbody.whole("--particles", 12, "--initial", "random", "--steps", 0))
    exact, _ = ewald(particles[:, :3], np.arange(12**3), 0.03 / 12)
    error = particles[:, 6:] - exact
    assert math.sqrt((error**2).sum() / (exact**2).sum()) < 0.003


def test_energy_and_momentum_are_kept(nbody: Nbody) -> None:
    """In a box that stands still; particles fall from rest at random places."""
    options = ["--particles", 8, "--initial", "random", "--static", 0.005, "--softening", 0.15]

    def energies(particles: Array) -> tuple[float, float]:
        _, potential = ewald(particles[:, :3], np.arange(8**3), 0.15 / 8)
        return (particles[:, 3:6] ** 2).sum() / 2, potential.sum() / 2

    nothing, before = energies(np.load(nbody.whole(*options, "--steps", 0)))
    particles = np.load(nbody.whole(*options, "--steps", 100))
    kinetic, potential = energies(particles)
    assert nothing == 0
    # Enough has happened.
    assert kinetic > 0.3 * abs(before)
    assert abs(kinetic + potential - before) < 0.002 * kinetic
    momentum = particles[:, 3:6]
    assert np.linalg.norm(momentum.sum(axis=0)) < 1e-3 * np.linalg.norm(momentum, axis=1).sum()


def test_a_wave_grows_as_theory_says(nbody: Nbody) -> None:
    """A plane wave grows as the scale factor a, and keeps its shape until particles meet (Zel'dovich 1970)."""
    n, contrast = 16, 0.6
    options = ["--particles", n, "--initial", "wave", "--amplitude", contrast, "--from", 0.1, "--to", 1, "--steps", 40]
    particles = np.load(nbody.whole(*options))
    grid = (np.arange(n) + 0.5) / n
    q = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)
    displacement = particles[:, :3] - q
    displacement -= np.round(displacement)
    shape = np.sin(2 * math.pi * q[:, 0])
    expected = -contrast / (2 * math.pi)

    def amplitude(values: Array) -> float:
        return float((values * shape).sum() / (shape**2).sum())

    assert abs(amplitude(displacement[:, 0]) / expected - 1) < 0.01
    # p = a^2 dx/dt = a^(3/2) times the displacement at a = 1.
    assert abs(amplitude(particles[:, 3]) / expected - 1) < 0.02
    assert np.abs(displacement[:, 0] - expected * shape).max() < 0.03 * abs(expected)
    assert np.abs(displacement[:, 1:]).max() < 1e-3 * abs(expected)


def test_initial_waves_have_the_spectrum_asked_for(nbody: Nbody) -> None:
    """The momenta are those of a random field of this root mean square and slope, without rotation."""
    n, power = 32, -1.0
    options = ["--particles", n, "--steps", 0, "--from", 0.01, "--amplitude", 3, "--spectrum", power]
    particles = np.load(nbody.whole(*options))
    fields = np.fft.fftn((particles[:, 3:6] / 0.01**1.5).reshape(n, n, n, 3), axes=(0, 1, 2)) / n**3
    k = np.stack(np.meshgrid(*[np.fft.fftfreq(n, 1 / n)] * 3, indexing="ij"), axis=-1)
    length = np.linalg.norm(k, axis=-1)
    contrast = -2j * math.pi * (k * fields).sum(axis=-1)
    assert abs(math.sqrt((np.abs(contrast) ** 2).sum()) / 3 - 1) < 0.05
    assert np.abs(np.cross(k, fields)).max() < 1e-12
    low, high = (length > 1) & (length < 4), (length > 8) & (length < 14)
    ratio = (np.abs(contrast[high]) ** 2).mean() / (np.abs(contrast[low]) ** 2).mean()
    expected = (length[high] ** power).mean() / (length[low] ** power).mean()
    assert 0.75 < ratio / expected < 1.33


# ---- Divisions change no bit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mpi", "parts", "shares", "ranks"),
    [
        ("openmpi", 1, "1", (2,)),
        ("openmpi", 2, "1:1", (1, 1)),
        ("openmpi", 2, "3:1", (2, 1)),
        ("openmpi", 3, "1:2:1", (1, 2, 1)),
        ("mpich", 3, "1:1:1", (2, 1, 1)),
    ],
)
def test_a_whole_program_of_several_parts(
    nbody: Nbody, reference: bytes, mpi: str, parts: int, shares: str, ranks: tuple[int, ...]
) -> None:
    listed = ",".join(map(str, ranks))
    options = ["--parts", parts, "--shares", shares, "--ranks", listed]
    same([nbody.whole(*SMALL, *options, ranks=sum(ranks), mpi=mpi)], reference)


@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        ((1, 1), []),
        ((2, 2), []),
        ((2, 1), ["--shares", "3:1"]),
        ((1, 1), ["--shares", "1:3", "--streams", "3"]),
        ((1, 1, 1), []),
        ((1, 2, 1), ["--round", "one"]),
        ((1, 1, 1), ["--shares", "1:1:2"]),
    ],
)
def test_programs_joined_by_paths(nbody: Nbody, reference: bytes, ranks: tuple[int, ...], options: list[str]) -> None:
    same(nbody.parts(*SMALL, *options, ranks=ranks), reference)


def test_programs_of_two_kinds_of_mpi(nbody: Nbody, reference: bytes) -> None:
    same(nbody.parts(*SMALL, ranks=(2, 2), mpis=("openmpi", "mpich")), reference)


@pytest.mark.parametrize("way", ["both", "one"])
def test_five_parts_pass_the_mesh_on(nbody: Nbody, way: str) -> None:
    """Parts without a common path."""
    options = ["--particles", 8, "--mesh", 70, "--split", 1, "--cutoff", 3, "--from", 0.02, "--to", 0.04, "--steps", 3]
    undivided = nbody.whole(*options).read_bytes()
    same([nbody.whole(*options, "--parts", 5, "--round", way, ranks=5)], undivided)
    same(nbody.parts(*options, "--round", way, ranks=[1] * 5), undivided)


@pytest.mark.parametrize(("until", "step_count"), [(0.5, 3), (0.2, 6)])
def test_what_is_computed_before_the_neighbours_are_heard_of(nbody: Nbody, until: float, step_count: int) -> None:
    """A mesh so fine that most forces need no other part. In the three steps, which are long, particles come from the
    other part so deep into this one that all must be computed anew."""
    options = ["--particles", 12, "--mesh", 96, "--softening", 1, "--from", 0.1, "--to", until, "--steps", step_count]
    same([nbody.whole(*options, "--parts", 2, ranks=2)], nbody.whole(*options).read_bytes())


def steps(file: Path) -> dict[str, Array]:
    """The columns of a file of steps."""
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def test_cuts_follow_the_work(nbody: Nbody) -> None:
    """A part of three quarters of the work has about three quarters of the interactions, and moves its cut for that."""
    file = nbody.folder / "three.csv"
    options = ["--particles", 16, "--from", 0.05, "--to", 1, "--steps", 30, "--parts", 2, "--shares", "3:1"]
    nbody.whole(*options, "--steps-file", file, ranks=2)
    found = steps(file)
    whole = nbody.folder / "undivided.csv"
    nbody.whole(*options[:-4], "--steps-file", whole)
    work = found["interactions"] + 100 * found["particles"]
    all_work = steps(whole)["interactions"] + 100 * steps(whole)["particles"]
    assert list(found["step"]) == list(range(1, 31))
    assert abs(found["end"][0] - 0.75) < 1e-6
    assert abs(found["end"][-1] - 0.75) > 0.01
    share = work / all_work
    assert np.abs(share - 0.75).max() < 0.05
    assert abs(share.mean() - 0.75) < 0.015


def test_what_one_part_sends_the_other_receives(nbody: Nbody) -> None:
    """By the files of steps of two parts."""
    port, files = free_port(), [nbody.folder / f"part-{part}.csv" for part in range(2)]
    address = f"127.0.0.1:{port}"
    common = [*nbody.command(1), *SMALL, "--parts", 2, "--key", nbody.key, "--quiet"]
    programs = [
        start([*common, "--part", part, *ways(part, [address] * 2), "--steps-file", file], nbody.folder)
        for part, file in enumerate(files)
    ]
    for program in programs:
        said = program.communicate(timeout=WATCHDOG)[0]
        assert program.returncode == 0 and said == "", said
    one, other = map(steps, files)
    assert (one["sent"] > 0).all() and (one["sent"] == other["received"]).all()
    assert (other["sent"] == one["received"]).all()
    assert (one["end"] == other["begin"]).all() and (one["particles"] + other["particles"] == 16**3).all()
    for part in (one, other):
        assert (part["waiting"] <= part["communication"]).all()
        assert (part["communication"] + part["tree"] + part["mesh"] <= part["seconds"]).all()


def script(nbody: Nbody, folder: Path, addresses: list[str], event: str, *options: object, ranks: int = 1) -> Path:
    """Runs a part on each of the hosts, and something once some steps are done."""
    lines = ["set -e"]
    for part, number in enumerate(range(1, len(addresses) + 1)):
        words = [*nbody.command(ranks), "--parts", len(addresses), "--part", part, "--key", nbody.key, "--quiet"]
        words += ways(part, addresses, "0.0.0.0:4711") + [*options, "--out", f"{folder}/host-{number}.npy"]
        line = " ".join(f"'{word}'" for word in map(str, words))
        if part == 0:
            first = f"{line} --steps-file {folder}/steps.csv"
        else:
            setting = " ".join(f"{name}={value}" for name, value in os.environ.items() if name.startswith("OMPI_ALLOW"))
            lines.append(f'ssh n{number} "cd {folder} && {setting} {line}" >n{number}.log 2>&1 & n{number}=$!')
    lines += [
        f"{first} >n1.log 2>&1 & n1=$!",
        "until grep -qs '^3,' steps.csv; do kill -0 $n1; sleep 0.01; done",
        event,
    ]
    lines += [f"wait $n{number} || {{ cat n*.log; exit 1; }}" for number in range(1, len(addresses) + 1)]
    file = folder / "hosts.sh"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize(
    ("count", "ranks", "options"),
    [(2, 1, []), (2, 2, ["--shares", "3:1"]), (3, 1, [])],
)
def test_parts_on_several_hosts(
    nbody: Nbody,
    reference: bytes,
    hosts: Hosts,  # noqa: F811
    tmp_path: Path,
    count: int,
    ranks: int,
    options: list[str],
) -> None:
    addresses = [f"n{number}:4711" for number in range(1, count + 1)]
    done = hosts(count, "sh", script(nbody, tmp_path, addresses, ":", *SMALL, *options, ranks=ranks))
    assert done.returncode == 0, done.stdout
    same([tmp_path / f"host-{number}.npy" for number in range(1, count + 1)], reference)


def test_a_cut_of_the_line_changes_no_bit(nbody: Nbody, hosts: Hosts, tmp_path: Path) -> None:  # noqa: F811
    options = ["--particles", 16, "--steps", 60, "--to", 0.1]
    event = "ip link set second-n2 down; sleep 5; ip link set second-n2 up"
    addresses = ["10.71.0.1:4711", "10.71.0.2:4711"]
    cut = script(nbody, tmp_path, addresses, event, *options)
    done = hosts(2, "sh", cut, SECOND="1")
    assert done.returncode == 0, done.stdout
    # The cut came in the middle.
    assert steps(tmp_path / "steps.csv")["waiting"].max() > 3
    same([tmp_path / "host-1.npy", tmp_path / "host-2.npy"], nbody.whole(*options).read_bytes())


# ---- What the program says and writes ------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--shares", "1:2"], "--shares has 2 numbers, and there are 1 parts: give one a part"),
        (["--mesh", "33"], "--mesh is 33: give an even number"),
        (["--mesh", "many"], "--mesh is `many`: give a number from 24 to 512"),
        (["--particle", "a"], "--particles is `a`"),
        (["--mass"], "there is no option --mass; --help lists the options"),
        (["--parts", "4"], "part 0 would be 0.250000 boxes wide, and must be 0.273438 wide: take fewer --parts"),
        (["--parts", "2"], "there are 1 ranks for --parts 2, which take 2: give that number to mpirun -n"),
        (["--parts", "2", "--part", "0"], "part 0 of 2 listens: give --listen HOST:PORT"),
        (["--parts", "2", "--part", "1", "--listen", "x:1"], "part 1 of 2 does not listen"),
        (["--parts", "2", "--part", "2"], "--part is 2, and there are 2 parts: they count from 0"),
        (["--mesh", "24", "--split", "3"], "the near forces reach 0.625"),
        (["--static", "200", "--steps", "1"], "boxes in one step, and may by 0.25"),
        (["--steps", "1", "--steps-file", "no/where.csv"], "no/where.csv cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_be_is_told(nbody: Nbody, options: list[str], told: str) -> None:
    assert told in nbody.call(*nbody.command(1), *options, status=1)


def failures(nbody: Nbody, *words: list[Any]) -> list[str]:
    """Starts these programs, all of which fail; returns what they say."""
    programs = [start(words, nbody.folder) for words in words]
    said = [program.communicate(timeout=WATCHDOG)[0] for program in programs]
    assert [program.returncode for program in programs] == [1] * len(programs), said
    return said


def test_parts_with_other_settings_are_told(nbody: Nbody) -> None:
    address = f"127.0.0.1:{free_port()}"
    common = ["--parts", 2, "--key", nbody.key, "--particles", 16]
    one = [*nbody.command(2), *common, "--part", 0, "--listen", address, "--mesh", 32]
    other = [*nbody.command(1), *common, "--part", 1, "--open", address, "--mesh", 48]
    said = failures(nbody, one, other)
    assert "--mesh is 32 here, and 48 at part 1: start all parts with the same settings" in said[0]
    assert "--mesh is 48 here, and 32 at part 0: start all parts with the same settings" in said[1]


def test_a_path_to_the_wrong_part_is_told(nbody: Nbody) -> None:
    """Three parts in the wrong order round the ring."""
    at = [f"127.0.0.1:{free_port()}" for _ in range(3)]
    common = [*nbody.command(1), "--parts", 3, "--key", nbody.key]
    said = failures(
        nbody,
        *[[*common, "--part", i, "--listen", at[i], "--open", at[(i + 2) % 3]] for i in range(3)],
    )
    for part in range(3):
        assert (
            f"the path to part {(part + 1) % 3} has led to part {(part + 2) % 3}: part I opens its path" in said[part]
        )


def test_a_part_that_ends_is_told_at_the_other(nbody: Nbody) -> None:
    started = nbody.begin("--particles", 16, "--steps", 100_000, ranks=(1, 1), mpis=("openmpi", "openmpi"))
    (one, _), (other, _) = started
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            one.wait(2)
    finally:
        other.kill()
    assert "nbody: " in one.communicate(timeout=WATCHDOG)[0]
    other.communicate()
    assert one.returncode == 1


def test_frames_become_pictures(nbody: Nbody) -> None:
    options = [*SMALL, "--frames", 4, "--frames-folder", "film"]
    out = nbody.whole(*options, "--parts", 2, ranks=2)
    film = sorted((nbody.folder / "film").iterdir())
    assert [file.name for file in film] == ["00002.npy", "00004.npy", "00006.npy", "00008.npy"]
    assert film[-1].read_bytes() == out.read_bytes()
    nbody.call("python3", "plot.py", "--film", "film", "-o", "pictures")
    pictures = sorted((nbody.folder / "pictures").iterdir())
    assert [file.name for file in pictures] == [f"{number:05}.png" for number in range(1, 5)]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in pictures)


def test_the_demo_agrees_with_itself(nbody: Nbody) -> None:
    said = nbody.call("./run.sh", *SMALL)
    assert said.count("the same to the bit") == 2, said
    assert (nbody.folder / "build" / "nbody.svg").read_text().startswith("<?xml")
