"""Where a run on titin ends otherwise than on MUSCLE3, and why that is intended."""

from __future__ import annotations

from dataclasses import dataclass, field

from .systems import Outcome


@dataclass(frozen=True)
class Difference:
    """How the outcomes of one model differ, and the reason."""

    reason: str
    ours: int = 0
    """The exit code on titin."""
    theirs: int = 1
    """The exit code on MUSCLE3."""
    instances: frozenset[str] = field(default_factory=frozenset)
    """The instances whose records differ; all others have the same, or the first of them: a run of MUSCLE3's that fails
    ends instances wherever they are."""

    def check(self, ours: Outcome, theirs: Outcome) -> None:
        assert (ours.code, theirs.code) == (self.ours, self.theirs), (ours.output, theirs.output)
        names = ours.records.keys() | theirs.records.keys()
        differ = {name for name in names if ours.records.get(name, []) != theirs.records.get(name, [])}
        if theirs.code:
            differ -= {name for name in differ - self.instances if _begins(ours, theirs, name)}
        assert differ == self.instances, (self.reason, ours.records, theirs.records)


def _begins(ours: Outcome, theirs: Outcome, name: str) -> bool:
    """Whether what an instance has recorded on MUSCLE3 is the beginning of what it has recorded on titin."""
    cut = theirs.records.get(name, [])
    return ours.records.get(name, [])[: len(cut)] == cut


def _refused(reason: str, *instances: str) -> Difference:
    """MUSCLE3 refuses what titin runs."""
    return Difference(reason, instances=frozenset(instances))


_ORDER = "0.11 refuses calls out of its order of sends and receives, which 0.10 allowed; titin allows them by default"
_STEPS = "0.11 asks for matching_timelines, which its own v0.1 files cannot have; titin takes the two to step together"
_TWO_DIMENSIONS = "MUSCLE3 cannot connect instances in two dimensions: it counts a port that nothing is connected to"
_FRIENDS = [f"friend[{i}][{j}]" for i in range(2) for j in range(2)]

#: By model and version of MUSCLE3. Where a model ends alike it has no entry.
DIFFERENCES = {
    ("balanced", "0.11"): _refused(_ORDER, "balancer", "driver", "worker[0]", "worker[1]"),
    ("chained_balancers", "0.11"): _refused(
        "0.11 refuses a vector port that is made longer in a use", "driver", "outer"
    ),
    ("collecting", "0.11"): _refused(_ORDER, "driver", "worker[0]", "worker[1]"),
    ("out_of_order", "0.11"): _refused("0.11 has no flag SKIP_MMSF_SEQUENCE_CHECKS, so the import fails", "macro"),
    ("resized", "0.11"): _refused("0.11 refuses a vector port that is made longer in a use", "macro", "micro"),
    ("deadlock", "0.11"): Difference(_STEPS, 1, 1, frozenset(["left", "right"])),
    ("filters", "0.11"): Difference(
        "the nil of `pad` has the time of the step on titin, and that of the message that was padded on MUSCLE3",
        0,
        0,
        frozenset(["micro"]),
    ),
    ("interact", "0.11"): _refused(_STEPS, "left", "right"),
    ("multiplicities", "0.10"): _refused(_TWO_DIMENSIONS, "outer[0]", "outer[1]", *_FRIENDS),
    ("multiplicities", "0.11"): _refused(_TWO_DIMENSIONS, "outer[0]", "outer[1]", *_FRIENDS),
    ("no_default", "0.10"): Difference("an instance that has failed fails the run, whatever its exit code", 1, 0),
    ("no_default", "0.11"): Difference("an instance that has failed fails the run, whatever its exit code", 1, 0),
    ("overlay_on_message", "0.10"): Difference(
        "after the last use the settings are those of that use, as in 0.11", 0, 0, frozenset(["micro"])
    ),
    ("together", "0.10"): _refused("0.10 does not know matching_timelines", "left", "right"),
    ("bridged_near", "0.10"): _refused("0.10 has no bridges", "slow"),
    ("bridged_late", "0.10"): _refused("0.10 has no bridges", "slow"),
    ("bridged_window", "0.10"): _refused("0.10 has no bridges", "slow"),
}

#: What is not run on a version of MUSCLE3, and why.
NOT_RUN = {
    ("last", "0.10"): "0.10 reads filters and leaves them out, and its programs then wait for ever",
    ("last", "0.11"): "the programs record the same, and do not end: 0.11 waits at a port with this filter",
    ("filters", "0.10"): "0.10 reads filters and leaves them out, and its programs then wait for ever",
}
