"""Takes part for a few steps and then fails in the way that the argument names."""

import ctypes
import os
import signal
import subprocess
import sys
import time

how = sys.argv[1]


def fail() -> None:
    if how == "exception":
        raise RuntimeError("the mesh is tangled")
    if how == "exit":
        os._exit(3)
    if how == "exit0":
        os._exit(0)
    if how == "abort":
        os.abort()
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "panic":
        library = ctypes.CDLL(titin_library())
        library.titin_error.restype = ctypes.c_char_p
        status = library.titin_test_panic(None)
        raise RuntimeError(f"titin_test_panic returned {status}: {library.titin_error().decode()}")
    if how == "fork":
        # A child keeps every descriptor that it can. The parent dies all the same.
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "daemon":
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        os._exit(3)


def titin_library() -> str:
    flags = subprocess.run(["titin", "config", "--prefix"], capture_output=True, text=True, check=True)
    return os.path.join(flags.stdout.strip(), "lib", "libtitin.so")


def main() -> None:
    if how.startswith("before-"):
        globals()["how"] = how.removeprefix("before-")
        fail()
    if how == "never":
        return
    import titin

    if how == "misspelt":
        titin.Instance(o_i=["outt"], s=["in"])
    with titin.Instance(o_i=["out"], s=["in"]) as instance:
        while instance.reuse():
            for step in range(5):
                instance.send("out", [step], timestamp=float(step))
                instance.receive("in")
                if step == 2:
                    fail()
        if how == "unsent":
            return
    if how.startswith("after-"):
        globals()["how"] = how.removeprefix("after-")
        fail()


main()
