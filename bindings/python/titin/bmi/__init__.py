"""Models with the Basic Model Interface (BMI 2.0 of CSDMS) as programs of a run, without any code.

``python -m titin.bmi run package.module:Class heat.yaml`` is the program of a component; ``docs/bmi.md`` says what its
ports and settings are. Nothing of this package is loaded by ``import titin``.
"""

from titin.bmi.model import ModelError

__all__ = ["ModelError"]
