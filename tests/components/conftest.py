"""Models of titin's own components alone, run by the `titin` command."""

import subprocess

import pytest

WATCHDOG = 120  # seconds; only a hang takes so long

HEAD = "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n"


class Model:
    """A description that is put together piece by piece, and its runs."""

    def __init__(self, folder):
        self.folder = folder
        self.components, self.conduits, self.settings, self.rest = [], [], [], ""

    def add(self, name, kind, multiplicity=None, **ports):
        """Adds a component; `o_i="a b"` are ports."""
        many = f"\n        multiplicity: {multiplicity}" if multiplicity else ""
        listed = ", ".join(f"{operator}: {names}" for operator, names in ports.items())
        self.components.append(
            f"      {name}:\n        description: a {kind}\n        ports: {{{listed}}}\n"
            f"        implementation: titin.{kind}{many}\n"
        )
        return self

    def join(self, **conduits):
        """Adds conduits: `a__out="b.in"` is a conduit from a.out."""
        self.conduits += [f"      {sender.replace('__', '.')}: {to}\n" for sender, to in conduits.items()]
        return self

    def set(self, **settings):
        """Adds settings: `a__file="x.npy"` is the setting a.file."""
        self.settings += [f"  {name.replace('__', '.')}: {value}\n" for name, value in settings.items()]
        return self

    def run(self):
        """Runs the model; returns the folder with the instances. A failure shows the whole output."""
        done = self.start()
        assert done.returncode == 0, done.stdout
        return self.folder / "run" / "instances"

    def fail(self):
        """Runs a model that must fail; returns the output in one line, since the report breaks long lines."""
        done = self.start()
        assert done.returncode != 0, done.stdout
        return " ".join(done.stdout.split())

    def start(self):
        settings = "settings:\n" + "".join(self.settings) if self.settings else ""
        text = HEAD + "".join(self.components) + "    conduits:\n" + "".join(self.conduits) + settings + self.rest
        (self.folder / "model.ymmsl").write_text(text)
        return subprocess.run(
            ["titin", "run", "model.ymmsl", "--run-dir", "run"],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WATCHDOG,
        )


@pytest.fixture
def model(tmp_path):
    return Model(tmp_path)
