"""The arrays that `peer.py` sends and gets back, each greater by 1: port, shape and type of element."""

#: The arrays of `arrays.c`, which are global arrays. Other programs have some of them.
ARRAYS = {
    "even": ((13, 7), "f8"),
    "few": ((13, 7), "i4"),
    "cyclic": ((13, 7), "f8"),
    "uneven": ((13, 7), "i8"),
    "ghosts": ((13, 7), "f4"),
    "restricted": ((13, 7), "c16"),
    "line": ((29,), "i4"),
    "cube": ((5, 4, 3), "c8"),
    "half": ((7, 5), "f8"),
}

#: The arrays of `images.f90`, which are coarrays.
IMAGES = {
    "even": ((12, 8), "f8"),
    "uneven": ((13, 7), "i4"),
    "halo": ((13, 7), "f8"),
    "few": ((5,), "i8"),
}

#: The arrays of a program.
PROGRAMS = {
    ("arrays", "c"): ARRAYS,
    ("arrays", "cpp"): {name: ARRAYS[name] for name in ("even", "few", "cyclic")},
    ("arrays", "f90"): {name: ARRAYS[name] for name in ("even", "few", "cyclic")},
    ("images", "f90"): IMAGES,
}
