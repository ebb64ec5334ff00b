"""Where a run on titin ends otherwise than on MUSCLE3, and why that is intended."""

from __future__ import annotations

from dataclasses import dataclass, field

from .systems import Outcome


@dataclass(frozen=True)
class Difference:
    """How the outcomes of one model differ, and the reason."""

    reason: str
    ours: int
    """The exit code on titin."""
    theirs: int
    """The exit code on MUSCLE3."""
    instances: set[str] = field(default_factory=set)
    """The instances whose records differ; all others have the same."""

    def check(self, ours: Outcome, theirs: Outcome) -> None:
        assert (ours.code, theirs.code) == (self.ours, self.theirs), (ours.output, theirs.output)
        names = ours.records.keys() | theirs.records.keys()
        differ = {name for name in names if ours.records.get(name) != theirs.records.get(name)}
        assert differ == self.instances, (ours.records, theirs.records)


DIFFERENCES: dict[tuple[str, str], Difference] = {}
