"""What is due, lane by lane, by one look that takes and locks nothing. What may be taken, the claims decide."""

from dataclasses import dataclass
from typing import Final

from common.prepared import fetch
from workflows import registry
from workflows.enums import Lane

_DUE: Final = """
    SELECT
        ARRAY(
            SELECT lane FROM unnest(%(lanes)s::text[]) AS l(lane) WHERE EXISTS (
                SELECT FROM unnest(%(names)s::text[], %(versions)s::int[]) AS known(operation, version)
                WHERE EXISTS (
                    SELECT FROM workflows_command c
                    WHERE c.status IN ('ready', 'retry_wait') AND c.lane = l.lane AND c.operation = known.operation
                      AND c.operation_version = known.version AND c.due_at <= clock_timestamp()))),
        ARRAY(
            SELECT lane FROM unnest(%(lanes)s::text[]) AS l(lane) WHERE EXISTS (
                SELECT FROM workflows_step s
                WHERE s.due_at IS NOT NULL AND s.due_at <= clock_timestamp() AND s.lane = l.lane))
"""


@dataclass(frozen=True, slots=True)
class Due:
    """The lanes in which something is due. More than can be claimed: what is held or locked counts too."""

    commands: frozenset[str]
    steps: frozenset[str]

    @classmethod
    def nothing(cls) -> "Due":
        return cls(frozenset(), frozenset())


def what_is_due() -> Due:
    known = registry.known_operations()
    ((commands, steps),) = fetch(_DUE, {
        "lanes": [str(lane) for lane in (Lane.NEW, Lane.REPROCESS)],
        "names": [name for name, _ in known], "versions": [version for _, version in known],
    })  # fmt: skip
    return Due(frozenset(commands), frozenset(steps))
