"""``muscle3``: looks at a profile, and counts the nodes that a model needs."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys

from muscle3.command import titin


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="muscle3", description="Looks at coupled models and their runs, on titin.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    profile = commands.add_parser("profile", help="show where the time of a run went")
    profile.add_argument("file", metavar="PERFORMANCE_FILE", help="the performance.sqlite of a run")
    profile.add_argument("-i", "--instances", action="store_true", help="for each instance")
    profile.add_argument("-r", "--resources", action="store_true", help="for each core")
    profile.add_argument("-t", "--timeline", action="store_true", help="as a timeline of events")
    profile.set_defaults(call=_profile)

    resources = commands.add_parser("resources", help="print how many nodes a model needs")
    resources.add_argument("files", nargs="+", metavar="YMMSL_FILE", help="merged from left to right")
    resources.add_argument("-c", "--cores-per-node", required=True, type=int, metavar="CORES")
    resources.add_argument("-v", "--verbose", action="store_true", help="say of each component what it needs")
    resources.set_defaults(call=_resources)

    snapshot = commands.add_parser("snapshot", help="show a snapshot of MUSCLE3's; titin takes none")
    snapshot.add_argument("files", nargs="+", metavar="SNAPSHOT_FILE")
    snapshot.add_argument("-d", "--data", action="store_true")
    snapshot.add_argument("-v", "--verbose", action="store_true")
    snapshot.set_defaults(call=_snapshot)

    options = parser.parse_args()
    sys.exit(options.call(options))


def _profile(options: argparse.Namespace) -> int:
    if not os.path.exists(options.file):
        print(f"muscle3: there is no profile at {options.file}", file=sys.stderr)
        return 2
    if not _is_database(options.file):
        print(f"muscle3: {options.file} is no profile: name the performance.sqlite of a run", file=sys.stderr)
        return 2
    if not (options.instances or options.resources or options.timeline):
        print("Please specify -i, -r or -t to choose which data you would like to see.")
        return 1
    try:
        from muscle3 import plots
    except ImportError as missing:
        return _tables(options, f"{missing}; for pictures: pip install matplotlib")
    if not plots.can_show():
        return _tables(options, "there is no display")
    if options.instances:
        plots.instances(options.file)
    if options.resources:
        plots.cores(options.file)
    if options.timeline:
        plots.timeline(options.file)
    plots.show()
    return 0


def _is_database(file: str) -> bool:
    """Whether SQLite can have written the file."""
    with open(file, "rb") as opened:
        return opened.read(16) == b"SQLite format 3\0"


def _tables(options: argparse.Namespace, reason: str) -> int:
    """Prints titin's tables, which have the times of instances and of cores."""
    print(f"muscle3: tables, not pictures ({reason})", file=sys.stderr)
    if options.timeline:
        file = shlex.quote(options.file)
        print(f"muscle3: for a timeline: titin profile {file} --plot timeline.svg", file=sys.stderr)
    return subprocess.run([titin(), "profile", options.file]).returncode


def _resources(options: argparse.Namespace) -> int:
    command = [titin(), "resources", "--cores-per-node", str(options.cores_per_node)]
    if options.verbose:
        return subprocess.run([*command, "--", *options.files]).returncode and 1
    done = subprocess.run([*command, "--json", "--", *options.files], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return 1
    print(json.loads(done.stdout)["without_waiting"]["nodes"], end="")
    return 0


def _snapshot(options: argparse.Namespace) -> int:
    print(
        f"muscle3: titin takes no snapshots, and does not read {', '.join(options.files)}: use the muscle3 command of "
        "the distribution muscle3",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    main()
