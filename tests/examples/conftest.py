"""The examples, run by the commands of their READMEs."""

import contextlib
import importlib
import sys

import pytest

from ..conftest import Copy, in_force, needs


class Examples(Copy):
    """A copy of all examples, since some use files of others."""

    def titin(self, *files, folder, run):
        """Runs `titin run` with some files of an example; the files after the first choose a variant. Returns the run
        directory."""
        run_dir = self.folder / folder / "build" / run
        self.call("titin", "run", *files, "--run-dir", run_dir, folder=folder)
        in_force(run_dir, *(self.folder / folder / file for file in files[1:]))
        return run_dir

    @contextlib.contextmanager
    def module(self, folder, name):
        """A Python module of an example."""
        sys.path.insert(0, str(self.folder / folder))
        try:
            yield importlib.import_module(name)
        finally:
            sys.path.pop(0)
            sys.modules.pop(name, None)


@pytest.fixture(scope="session")
def examples(tmp_path_factory):
    return Examples.of("examples", tmp_path_factory)


@pytest.fixture(scope="session")
def mpi():
    """Open MPI, for examples that are parallel."""
    needs("mpicc", "mpirun.openmpi")
