"""The arrays that `peer.py` sends and gets back, each greater by 1: port, shape and type of element."""

#: What `arrays.c` has in global arrays, and which others have some of.
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

#: What `images.f90` has in coarrays.
IMAGES = {
    "even": ((12, 8), "f8"),
    "uneven": ((13, 7), "i4"),
    "halo": ((13, 7), "f8"),
    "few": ((5,), "i8"),
}

#: Which of them a program has.
PROGRAMS = {
    ("arrays", "c"): ARRAYS,
    ("arrays", "cpp"): {name: ARRAYS[name] for name in ("even", "few", "cyclic")},
    ("arrays", "f90"): {name: ARRAYS[name] for name in ("even", "few", "cyclic")},
    ("images", "f90"): IMAGES,
}
