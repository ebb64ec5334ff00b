"""A stand-in for the Python package of Flux, as far as PSI/J uses it: a job is processes of this host."""

from . import job as job


class Flux:
    """A connection to Flux."""
