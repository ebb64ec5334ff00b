"""A plate whose source has the unit of its temperature, so that two plates fit each other."""

from __future__ import annotations

from zoo import Heat


class Plate(Heat):
    """Two of these exchange their temperatures."""

    def begin(self):
        super().begin()
        self.told["plate_surface__heat_source"] = ("K", 0, "node")
