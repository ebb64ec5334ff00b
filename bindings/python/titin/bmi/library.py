"""Models in shared libraries, with the methods of a model in Python.

Two conventions are known. By BMI's C entry a library exports ``register_bmi``, which fills a structure with pointers to
functions, in the order of CSDMS's ``bmi.h`` (2.0); C, C++ and Fortran can do so. By the convention of xmipy, which
MODFLOW 6 has, a library exports the functions themselves, and holds one model.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from titin.bmi.model import Model, ModelError

SUCCESS = 0
# The sizes of texts: BMI_MAX_... of bmi.h, and what MODFLOW 6 has if it tells none.
TEXT = 2048

_INT, _DOUBLE, _TEXT, _MEMORY = ctypes.c_int, ctypes.c_double, ctypes.c_char_p, ctypes.c_void_p
_INTS, _DOUBLES = ctypes.POINTER(_INT), ctypes.POINTER(_DOUBLE)

# The members of the structure in their order, with the arguments behind the model.
_MEMBERS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("initialize", (_TEXT,)),
    ("update", ()),
    ("update_until", (_DOUBLE,)),
    ("finalize", ()),
    ("get_component_name", (_MEMORY,)),
    ("get_input_item_count", (_INTS,)),
    ("get_output_item_count", (_INTS,)),
    ("get_input_var_names", (_MEMORY,)),
    ("get_output_var_names", (_MEMORY,)),
    ("get_var_grid", (_TEXT, _INTS)),
    ("get_var_type", (_TEXT, _MEMORY)),
    ("get_var_units", (_TEXT, _MEMORY)),
    ("get_var_itemsize", (_TEXT, _INTS)),
    ("get_var_nbytes", (_TEXT, _INTS)),
    ("get_var_location", (_TEXT, _MEMORY)),
    ("get_current_time", (_DOUBLES,)),
    ("get_start_time", (_DOUBLES,)),
    ("get_end_time", (_DOUBLES,)),
    ("get_time_units", (_MEMORY,)),
    ("get_time_step", (_DOUBLES,)),
    ("get_value", (_TEXT, _MEMORY)),
    ("get_value_ptr", (_TEXT, ctypes.POINTER(_MEMORY))),
    ("get_value_at_indices", (_TEXT, _MEMORY, _INTS, _INT)),
    ("set_value", (_TEXT, _MEMORY)),
    ("set_value_at_indices", (_TEXT, _INTS, _INT, _MEMORY)),
    ("get_grid_rank", (_INT, _INTS)),
    ("get_grid_size", (_INT, _INTS)),
    ("get_grid_type", (_INT, _MEMORY)),
    ("get_grid_shape", (_INT, _MEMORY)),
    ("get_grid_spacing", (_INT, _MEMORY)),
    ("get_grid_origin", (_INT, _MEMORY)),
    ("get_grid_x", (_INT, _MEMORY)),
    ("get_grid_y", (_INT, _MEMORY)),
    ("get_grid_z", (_INT, _MEMORY)),
    ("get_grid_node_count", (_INT, _INTS)),
    ("get_grid_edge_count", (_INT, _INTS)),
    ("get_grid_face_count", (_INT, _INTS)),
    ("get_grid_edge_nodes", (_INT, _MEMORY)),
    ("get_grid_face_edges", (_INT, _MEMORY)),
    ("get_grid_face_nodes", (_INT, _MEMORY)),
    ("get_grid_nodes_per_face", (_INT, _MEMORY)),
)


class _Structure(ctypes.Structure):
    """``Bmi`` of ``bmi.h``: the model's own memory, then the pointers."""

    _fields_ = [
        ("data", _MEMORY),
        *((name, ctypes.CFUNCTYPE(_INT, _MEMORY, *arguments)) for name, arguments in _MEMBERS),
    ]


def load(where: str, symbol: str = "") -> Callable[[], Any]:
    """What makes the models of a library, by the convention that it follows. Raises :class:`ModelError`."""
    path = Path(where)
    if not path.is_file() and os.sep in where:
        raise ModelError(f"there is no library {path.absolute()}: build it, and write an absolute path")
    try:
        library = ctypes.CDLL(str(path.absolute()) if path.is_file() else where)
    except OSError as error:
        raise ModelError(
            f"the library {where} cannot be loaded: {error}. Looked for in {Path.cwd()}, LD_LIBRARY_PATH and the "
            "folders of the system: write an absolute path"
        ) from None
    entry = getattr(library, symbol or "register_bmi", None)
    if entry is not None:
        entry.restype, entry.argtypes = _MEMORY, (ctypes.POINTER(_Structure),)
        return lambda: StructureModel(entry, library)
    if symbol:
        raise ModelError(f"the library {where} has no function {symbol}, which should fill BMI's structure")
    missing = [name for name in ("initialize", "update", "get_current_time") if not hasattr(library, name)]
    if missing:
        raise ModelError(
            f"the library {where} has neither register_bmi nor the functions of xmipy's convention (it "
            f"lacks {', '.join(missing)}): if its entry has another name, write libmodel.so:register_bmi_name"
        )
    return lambda: ExportedModel(library)


class _LibraryModel:
    """What both conventions share: a call gives a status, and results go into memory of the caller.

    The conventions differ in the call itself, in how the number of a grid is passed, and in where names and texts go.
    """

    def _call(self, name: str, *arguments: Any) -> None:
        raise NotImplementedError

    def _grid(self, grid: int) -> Any:
        """The number of a grid as an argument."""
        raise NotImplementedError

    def _names(self, function: str, count: int) -> tuple[str, ...]:
        raise NotImplementedError

    def _text_size(self, name: str) -> int:
        """How many bytes a function that tells a text may write."""
        return TEXT

    def _int(self, name: str, *arguments: Any) -> int:
        found = _INT(0)
        self._call(name, *arguments, ctypes.byref(found))
        return found.value

    def _double(self, name: str) -> float:
        found = _DOUBLE(0.0)
        self._call(name, ctypes.byref(found))
        return found.value

    def _text(self, name: str, *arguments: Any) -> str:
        found = ctypes.create_string_buffer(self._text_size(name))
        self._call(name, *arguments, found)
        return _decoded(found.value)

    def update(self) -> None:
        self._call("update")

    def update_until(self, time: float) -> None:
        self._call("update_until", _DOUBLE(time))

    def finalize(self) -> None:
        self._call("finalize")

    def get_component_name(self) -> str:
        return self._text("get_component_name")

    def get_input_item_count(self) -> int:
        return self._int("get_input_item_count")

    def get_output_item_count(self) -> int:
        return self._int("get_output_item_count")

    def get_input_var_names(self) -> tuple[str, ...]:
        return self._names("get_input_var_names", self.get_input_item_count())

    def get_output_var_names(self) -> tuple[str, ...]:
        return self._names("get_output_var_names", self.get_output_item_count())

    def get_var_grid(self, name: str) -> int:
        return self._int("get_var_grid", name.encode())

    def get_var_type(self, name: str) -> str:
        return self._text("get_var_type", name.encode())

    def get_var_units(self, name: str) -> str:
        return self._text("get_var_units", name.encode())

    def get_var_itemsize(self, name: str) -> int:
        return self._int("get_var_itemsize", name.encode())

    def get_var_nbytes(self, name: str) -> int:
        return self._int("get_var_nbytes", name.encode())

    def get_var_location(self, name: str) -> str:
        return self._text("get_var_location", name.encode())

    def get_current_time(self) -> float:
        return self._double("get_current_time")

    def get_start_time(self) -> float:
        return self._double("get_start_time")

    def get_end_time(self) -> float:
        return self._double("get_end_time")

    def get_time_units(self) -> str:
        return self._text("get_time_units")

    def get_time_step(self) -> float:
        return self._double("get_time_step")

    def get_grid_rank(self, grid: int) -> int:
        return self._int("get_grid_rank", self._grid(grid))

    def get_grid_size(self, grid: int) -> int:
        return self._int("get_grid_size", self._grid(grid))

    def get_grid_type(self, grid: int) -> str:
        return self._text("get_grid_type", self._grid(grid))

    def get_grid_node_count(self, grid: int) -> int:
        return self._int("get_grid_node_count", self._grid(grid))

    def get_grid_edge_count(self, grid: int) -> int:
        return self._int("get_grid_edge_count", self._grid(grid))

    def get_grid_face_count(self, grid: int) -> int:
        return self._int("get_grid_face_count", self._grid(grid))

    def __getattr__(self, name: str) -> Callable[..., NDArray[Any]]:
        """The methods of a grid that fill an array, of whole numbers of C or of doubles; and those of the draft of a
        parallel interface, if the library exports them."""
        if name in _FILLING or (name in _PARALLEL and hasattr(self._library, name)):
            return lambda grid, *arrays: self._fill_arrays(name, grid, arrays)
        raise AttributeError(name)

    def _fill_arrays(self, name: str, grid: int, arrays: tuple[NDArray[Any], ...]) -> NDArray[Any]:
        memories = [_Guarded(array) for array in arrays]
        self._fill(name, self._grid(grid), *memories)
        for array, memory in zip(arrays, memories):
            array[:] = memory.values
        return arrays[0]

    def _fill(self, name: str, argument: Any, *memories: _Guarded) -> NDArray[Any]:
        """What a function writes into this memory; of several, what it writes into the first."""
        self._call(name, argument, *(memory.address for memory in memories))
        for memory in memories:
            if not memory.is_whole():
                raise ModelError(
                    f"the library's {name} has written beyond the {memory.values.size} values that it has: have what "
                    "it writes agree with get_var_nbytes, get_grid_rank and get_grid_size"
                )
        return memories[0].values


class StructureModel(_LibraryModel):
    """A model by BMI's C entry. Each model has a structure of its own."""

    def __init__(self, entry: Any, library: ctypes.CDLL) -> None:
        self._library = library
        self._structure = _Structure()
        entry(ctypes.byref(self._structure))
        if not self._structure.initialize:
            raise ModelError(f"{entry.__name__} has left the structure empty: it sets a function for each member")
        self._memory: dict[str, _Guarded] = {}
        if hasattr(library, "parallel_initialize"):
            self.parallel_initialize = lambda comm: self._call("parallel_initialize", comm.py2f())

    def _call(self, name: str, *arguments: Any) -> None:
        # The structure has no members for the draft of a parallel interface: the library exports these functions.
        function = getattr(self._library if name in _PARALLEL else self._structure, name)
        if not function:
            raise NotImplementedError(f"the library leaves {name} empty")
        if function(ctypes.byref(self._structure), *arguments) != SUCCESS:
            if name in _OPTIONAL:
                raise NotImplementedError(f"the library's {name} has returned a failure")
            raise RuntimeError(f"the library's {name} has returned a failure; what it has printed may say why")

    def _grid(self, grid: int) -> int:
        return grid

    def _names(self, function: str, count: int) -> tuple[str, ...]:
        if not 0 <= count <= _MANY:
            raise ModelError(
                f"the library's {function.replace('var_names', 'item_count')} has told {count}, and no count"
            )
        texts = [ctypes.create_string_buffer(TEXT) for _ in range(count)]
        pointers = (_MEMORY * count)(*map(ctypes.addressof, texts))
        self._call(function, ctypes.cast(pointers, _MEMORY))
        # A library may fill the texts, or have the pointers lead to its own.
        return tuple(_decoded(ctypes.string_at(pointer)) for pointer in pointers if pointer)

    def initialize(self, config: str) -> None:
        self._call("initialize", config.encode())

    def get_value(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        if name not in self._memory:
            self._memory[name] = _Guarded(values)
        return self._fill("get_value", name.encode(), self._memory[name])

    def get_value_ptr(self, name: str) -> NDArray[Any]:
        found = _MEMORY()
        self._call("get_value_ptr", name.encode(), ctypes.byref(found))
        kind = Model("the library", self).kind(name)
        return _view(found.value, kind, (self.get_var_nbytes(name) // kind.itemsize,), name)

    def set_value(self, name: str, values: NDArray[Any]) -> None:
        values = np.ascontiguousarray(values)
        self._call("set_value", name.encode(), values.ctypes.data)


class ExportedModel(_LibraryModel):
    """The model of a library by xmipy's convention. It runs in the folder of its configuration, as with xmipy."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._outside = Path.cwd()
        if hasattr(library, "initialize_mpi"):
            self.initialize_mpi = self._initialize_on_ranks

    def _call(self, name: str, *arguments: Any) -> None:
        function = getattr(self._library, name, None)
        if function is None:
            raise NotImplementedError(f"the library exports no {name}")
        if function(*arguments) == SUCCESS:
            return
        text = ""
        if hasattr(self._library, "get_last_bmi_error"):
            found = ctypes.create_string_buffer(self._size("BMI_LENERRMESSAGE"))
            self._library.get_last_bmi_error(found)
            text = _decoded(found.value)
        raise RuntimeError(f"the library's {name} has failed: {text or 'it says no more'}")

    def _grid(self, grid: int) -> Any:
        return ctypes.byref(_INT(grid))

    def _names(self, function: str, count: int) -> tuple[str, ...]:
        """The names, which lie one after the other in pieces of one size."""
        size = self._size("BMI_LENVARADDRESS")
        memory = ctypes.create_string_buffer(max(count * size, 1))
        self._call(function, memory)
        pieces = (memory.raw[at : at + size] for at in range(0, count * size, size))
        return tuple(_decoded(piece.split(b"\0", 1)[0]) for piece in pieces)

    def _text_size(self, name: str) -> int:
        return self._size(_TEXT_SIZES[name]) if name in _TEXT_SIZES else TEXT

    def _size(self, constant: str) -> int:
        try:
            return _INT.in_dll(self._library, constant).value
        except ValueError:
            return TEXT

    def initialize(self, config: str) -> None:
        self._enter(config)
        self._call("initialize", config.encode())

    def _initialize_on_ranks(self, config: str, communicator: int) -> None:
        """Stands for ``initialize`` on several ranks. The library finds its configuration in its folder."""
        self._enter(config)
        self._call("initialize_mpi", ctypes.byref(_INT(communicator)))

    def _enter(self, config: str) -> None:
        if config:
            path = Path(config).absolute()
            os.chdir(path if path.is_dir() else path.parent)

    def finalize(self) -> None:
        super().finalize()
        # The next use finds its configuration from where this one began.
        os.chdir(self._outside)

    def get_var_type(self, name: str) -> str:
        # MODFLOW 6 adds the shape: DOUBLE (100).
        return super().get_var_type(name).split("(")[0].strip()

    def get_value(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        values[:] = self.get_value_ptr(name).reshape(-1)
        return values

    def get_value_ptr(self, name: str) -> NDArray[Any]:
        kind, shape = Model("the library", self).kind(name), self.get_var_shape(name)
        found = _MEMORY()
        function = "get_value_ptr"
        if not hasattr(self._library, function):
            function = {"f8": "get_value_ptr_double", "i4": "get_value_ptr_int"}.get(kind.str[1:], function)
        self._call(function, name.encode(), ctypes.byref(found))
        return _view(found.value, kind, shape, name)

    def get_var_shape(self, name: str) -> tuple[int, ...]:
        """The shape of a variable in C order; empty for a single number."""
        rank = self._int("get_var_rank", name.encode())
        shape = (_INT * max(rank, 1))()
        if rank:
            self._call("get_var_shape", name.encode(), shape)
        return tuple(shape[:rank])

    def set_value(self, name: str, values: NDArray[Any]) -> None:
        if not hasattr(self._library, "set_value"):
            self.get_value_ptr(name).reshape(-1)[:] = values
            return
        values = np.ascontiguousarray(values)
        self._call("set_value", name.encode(), ctypes.byref(_MEMORY(values.ctypes.data)))


class _Guarded:
    """Memory of the size of an array, with a mark behind it that shows whether a library has written more."""

    def __init__(self, like: NDArray[Any]) -> None:
        self._bytes = np.zeros(like.nbytes + _MARK_SIZE, np.uint8)
        self._bytes[like.nbytes :] = _MARK
        self.values: NDArray[Any] = self._bytes[: like.nbytes].view(like.dtype)
        self.address = _MEMORY(self._bytes.ctypes.data)

    def is_whole(self) -> bool:
        """Whether the mark is as it was."""
        return bool((self._bytes[-_MARK_SIZE:] == _MARK).all())


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace").strip()


def _view(address: int | None, kind: np.dtype[Any], shape: tuple[int, ...], name: str) -> NDArray[Any]:
    """The memory of a library as an array. The memory is the library's, and is not freed by the array."""
    size = math.prod(shape) * kind.itemsize
    if not address and size:
        raise NotImplementedError(f"the library's get_value_ptr of {name} has given no memory")
    if not size:
        return np.zeros(shape, kind)
    memory = memoryview((ctypes.c_char * size).from_address(address or 0))
    found: NDArray[Any] = np.frombuffer(memory, kind).reshape(shape)
    return found


_FILLING = {name for name, arguments in _MEMBERS if name.startswith("get_grid_") and arguments == (_INT, _MEMORY)} - {
    "get_grid_type"
}
# The functions of CSDMS's draft of a parallel interface, which a library exports beside its entry, with the model as
# their first argument.
_PARALLEL = {"parallel_initialize", "get_grid_partition_range"} | {
    f"get_grid_{what.format(kind)}" for kind in ("node", "edge", "face") for what in ("global_{}_nr", "{}_partition")
}
# What a library need not have: a failure says that it has none.
_OPTIONAL = (
    (_PARALLEL - {"parallel_initialize"})
    | {"get_value_ptr", "get_var_location", "update_until", "get_time_step", "get_end_time", "get_time_units"}
    | {name for name, _ in _MEMBERS if name.startswith("get_grid_")}
)
# The constants of xmipy's convention that tell the sizes of texts.
_TEXT_SIZES = {
    "get_component_name": "BMI_LENCOMPONENTNAME",
    "get_var_type": "BMI_LENVARTYPE",
    "get_grid_type": "BMI_LENGRIDTYPE",
}
# No model has so many variables: memory is not taken for a count that was never set.
_MANY = 100_000
_MARK, _MARK_SIZE = 0xA5, 64
