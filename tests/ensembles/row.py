"""A member of a study: answers each row of settings with a map of results."""

import os
import pathlib

import titin

with titin.Instance() as instance:
    has_port = "row" in instance.ports
    while instance.reuse():
        if has_port:
            row = instance.receive("row").data
            assert row["k"] == instance.setting("k", float), row
        how = instance.setting("how", str, default="fine")
        mark = pathlib.Path(f"../../once-{instance.setting('n', int, default=7)}")
        if how == "exit" or (how == "once" and not mark.exists()):
            mark.touch()
            os._exit(3)
        k, n, name = (
            instance.setting("k", float),
            instance.setting("n", int, default=7),
            instance.setting("name", str, default=""),
        )
        result = {"product": k * n, "greeting": f"I am {name}", "process": os.getpid()}
        if how == "twice":
            instance.send("out", result, timestamp=0.0)
        instance.send("out", result, timestamp=0.0)
