"""Builds descriptions in Python: components and conduits one by one, or rings, grids and networks of them.

>>> from titin.model import Model
>>> model = Model("heat", description="a ring that conducts heat")
>>> model.program("cell", executable="build/cell")
>>> cells = model.ring("cell", 100, implementation="cell")
>>> model.settings["steps"] = 200
>>> model.write("heat.ymmsl")

The file is yMMSL v0.2; :func:`titin.run` takes the model as it is. ``titin check`` reports mistakes in a file.
"""

from titin.model._model import Component, Model
from titin.model._network import read_edges

__all__ = ["Component", "Model", "read_edges"]
