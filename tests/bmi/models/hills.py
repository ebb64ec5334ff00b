"""A component of landlab with the Basic Model Interface."""

from __future__ import annotations

from landlab.bmi import wrap_as_bmi
from landlab.components import LinearDiffuser

Hills = wrap_as_bmi(LinearDiffuser)
