"""The command ``titin convert``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .description import description
from .record import CxaError, recorded


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="titin convert",
        description="Makes a description from a CxA file of MUSCLE 2, a script in Ruby that ruby runs. Lines that "
        "begin with '# WARNING' in the description tell what has no equal.",
    )
    parser.add_argument("file", type=Path, help="the CxA file: model.cxa.rb")
    parser.add_argument("-o", "--output", type=Path, help="the description to write; without it, standard output")
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    parser.add_argument("--ruby", default="ruby", help="the command that runs the file (default: ruby)")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds that the file may take (default: 60)")
    options = parser.parse_args()
    try:
        write(description(recorded(options.file, options.ruby, options.timeout), options.file), options)
    except CxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.filename or options.file}: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0


def write(text: str, options: argparse.Namespace) -> None:
    warnings = [line.strip().removeprefix("# WARNING: ") for line in text.splitlines() if "# WARNING: " in line]
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if options.output is None:
        sys.stdout.buffer.write(text.encode())
        return
    if options.output.exists() and not options.force:
        raise CxaError(f"{options.output} is there already: name another file, or give --force")
    options.output.write_text(text, encoding="utf-8")
    print(f"{options.output}: look at the operators of its ports, then: titin check {options.output}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
