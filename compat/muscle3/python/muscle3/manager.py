"""``muscle_manager``: runs a coupled model, or serves one whose programs are started by hand."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from muscle3.command import Child

_DIRECTORY = "run directory: "
_BY_HAND = "Start each of these programs"
_LAST_LINES = 50
#: The levels of MUSCLE3.
_LEVELS = ("DISABLE", "CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG", "LOCAL")


def main() -> None:
    """The command."""
    options = _parser().parse_args()
    child = Child(_arguments(options))
    directory, heard = "", True
    for line in child.lines():
        if line.startswith(_DIRECTORY):
            directory = line.removeprefix(_DIRECTORY).rstrip("\n")
        elif line.startswith(_BY_HAND) and not options.location_file:
            # Programs that the user starts need this as MUSCLE_MANAGER.
            print(os.path.join(directory, "connection.json"), flush=True)
        if heard:
            try:
                sys.stderr.write(line)
                sys.stderr.flush()
            except OSError:
                # As after `| head`. The run goes on, and its log is in its directory.
                heard = False
    code = child.wait()
    _end(directory, code == 0)
    sys.exit(0 if code == 0 else 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="muscle_manager",
        description="Runs a coupled model on titin. The files are merged from left to right.",
        epilog="Exit codes: 0 the run is done; 1 it has failed, or could not begin; 2 an option is wrong.",
    )
    parser.add_argument("files", nargs="+", metavar="YMMSL_FILE", help="a description in yMMSL; - is standard input")
    parser.add_argument("--start-all", action="store_true", help="start all programs, but those that are manual")
    parser.add_argument("--no-start-all", action="store_false", dest="start_all", help="start none (the default)")
    parser.add_argument(
        "--log-level",
        metavar="LEVEL",
        default="INFO",
        type=str.upper,
        choices=_LEVELS,
        help=f"one of {', '.join(_LEVELS)}; DEBUG shows the whole log; default: INFO",
    )
    parser.add_argument("--run-dir", metavar="DIRECTORY", help="where files go; default: run_MODEL_DATE_TIME")
    parser.add_argument("--location-file", metavar="FILE", help="where to write what MUSCLE_MANAGER has to be")
    parser.add_argument("-m", "--model", metavar="MODEL", help="the model to run, if the files have several")
    return parser


def _arguments(options: argparse.Namespace) -> list[str]:
    # The recording of sends and receives is on, as in MUSCLE3; `muscle_profile_level: none` switches it off.
    # Components without an implementation are left out, as in MUSCLE3.
    # A command that is killed takes its run with it.
    arguments = ["run" if options.start_all else "manager", "--trace", "--allow-missing", f"--parent={os.getpid()}"]
    if options.log_level == "DEBUG":
        arguments.append("--verbose")
    if options.run_dir:
        arguments += ["--run-dir", options.run_dir]
    if options.model:
        arguments += ["--model", options.model]
    if options.location_file:
        arguments += ["--location-file", options.location_file]
    return [*arguments, "--", *options.files]


def _end(directory: str, well: bool) -> None:
    """Says how the run has ended, and gives the log MUSCLE3's name beside titin's."""
    if not directory:
        return
    theirs = os.path.join(directory, "muscle3_manager.log")
    if not os.path.exists(theirs):
        os.link(os.path.join(directory, "titin_manager.log"), theirs)
    if well:
        print("Simulation completed successfully.")
        print(f"Output may be found in {_short(directory)}")
    else:
        print("The simulation has failed. The log ends with:")
        print("-" * 80)
        print("".join(_last_lines(theirs)), end="")
        print("-" * 80)
        print(f"All of it is in {theirs}")


def _last_lines(file: str) -> Sequence[str]:
    with open(file, errors="replace") as log:
        return log.readlines()[-_LAST_LINES:]


def _short(directory: str) -> str:
    """The path from here, if it lies below."""
    here = os.path.join(os.getcwd(), "")
    return directory.removeprefix(here)


if __name__ == "__main__":
    main()
