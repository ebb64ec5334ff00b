"""``python -m titin.bmi``: runs a model as a program of a run, or describes the model."""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from titin.bmi import describe, probe
from titin.bmi.model import ModelError
from titin.bmi.options import read_options
from titin.bmi.run import run
from titin.errors import Error


def main(words: Sequence[str] | None = None) -> int:
    """Does what the command line says; returns the exit code."""
    told = vars(_parser().parse_args(words))
    action = told.pop("action")
    try:
        # A crash says nothing by itself, so the calls go to standard error. A library that aborts has said why.
        faulthandler.enable()
        signal.signal(signal.SIGABRT, signal.SIG_DFL)
        match action:
            case "run":
                run(told, told.pop("mpi"))
            case "probe":
                del told["mpi"]
                _answer(lambda question: probe.probe(told, question))
            case "match":
                _answer(probe.match)
            case _:
                _describe(told)
    except Error as error:
        # The text and its notes say all; the frames behind it are titin's own.
        print(f"titin.bmi: {error}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return 1
    except Exception as raised:
        if action == "probe":
            print(*traceback.format_exception_only(raised), sep="", end="", file=sys.stderr)
        else:
            traceback.print_exception(raised)
        return 1
    return 0


def _answer(answer: Callable[[Any], object]) -> None:
    """Reads a question in JSON, and prints the answer."""
    question = json.load(sys.stdin)
    with _standard_output_left_alone():
        answered = answer(question)
    print(json.dumps(answered))


def _describe(told: dict[str, object]) -> None:
    as_json, settings = told.pop("json"), told.pop("setting")
    assert isinstance(settings, list)
    pairs = [text.partition("=") for text in settings]
    for name, sign, _ in pairs:
        if not sign:
            raise ModelError(f"--setting {name} is no pair: write NAME=VALUE")
    with _standard_output_left_alone():
        found = describe.known(read_options(told, {}), {name: value for name, _, value in pairs})
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        colored = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        print(describe.component(found, colored), end="")


@contextmanager
def _standard_output_left_alone() -> Iterator[None]:
    """What a model prints, in Python or in C, goes to standard error."""
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)
        os.dup2(output, 1)
        os.close(output)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m titin.bmi", description="Models with the Basic Model Interface as programs of a titin run."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="run|describe|probe|match")
    for name, text in (
        ("run", "takes part in the run that started it"),
        ("describe", "prints a component with the ports, types, units and grids of a model"),
        ("probe", "tells titin check what the ports of a component carry"),
        ("match", "tells titin check what does not fit between models"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        action.add_argument(
            "model",
            nargs=None if name == "describe" else "?",
            help="package.module:Class, file.py:Class or libmodel.so[:register_bmi]; setting bmi",
        )
        action.add_argument(
            "config", nargs="?", help="the file for initialize; {setting} in it is filled in; setting bmi_config"
        )
        action.add_argument(
            "--time-units", help="the unit of the model's times, if it tells none; setting bmi_time_units"
        )
        if name != "describe":
            action.add_argument(
                "--variable",
                dest="variables",
                action="append",
                metavar="PORT=VARIABLE",
                help="the variable of a port of another name; setting bmi_variables",
            )
            action.add_argument(
                "--every",
                action="append",
                metavar="[PORT=]TIME",
                help="how often a port is used, such as '1 h'; setting bmi_every",
            )
            action.add_argument(
                "--end", metavar="TIME", help="how long a use lasts, in place of the model's end; setting bmi_end"
            )
            action.add_argument(
                "--metadata",
                action=argparse.BooleanOptionalAction,
                default=None,
                help="whether messages tell units and grids; setting bmi_metadata",
            )
            action.add_argument(
                "--mpi",
                action="store_true",
                help="the model runs on all ranks of the MPI that has started it; titin run adds this",
            )
            action.add_argument(
                "--field",
                dest="fields",
                action="append",
                metavar="PORT",
                help="a port that carries a field; titin run adds those that the description has; setting bmi_fields",
            )
            action.add_argument(
                "--unit",
                dest="units",
                action="append",
                metavar="PORT=UNIT",
                help="the unit of what comes by a field, to be converted; setting bmi_units",
            )
            action.add_argument(
                "--blocks",
                action=argparse.BooleanOptionalAction,
                default=None,
                help="the arrays of the ranks follow each other along the first dimension; setting bmi_blocks",
            )
        else:
            action.add_argument(
                "--setting",
                action="append",
                default=[],
                metavar="NAME=VALUE",
                help="a value for a place of the configuration",
            )
            action.add_argument("--json", action="store_true", help="all that the model tells, as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
