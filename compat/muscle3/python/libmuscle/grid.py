"""Arrays with names for their indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Grid:
    """An array, and a name for each of its indices if there are any.

    A received array is read-only: it lies where titin has put the message. ``array.copy()`` gives one to write to.

    ``array``: the array, of any type and rank that titin sends (``docs/data.md``). ``indexes``: a list with as many
    names as the array has dimensions, or None. Raises ValueError for another number of names.
    """

    def __init__(self, array: NDArray[Any], indexes: list[str] | None = None) -> None:
        if indexes is not None and len(indexes) != array.ndim:
            raise ValueError(
                "Number of indexes must match number of array dimensions: "
                f"{len(indexes)} names for an array of rank {array.ndim}"
            )
        self.array = array
        self.indexes = indexes
