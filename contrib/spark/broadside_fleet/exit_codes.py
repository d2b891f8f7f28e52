"""What the exit code of `broadside send` means for a part and for the campaign."""

from __future__ import annotations

import enum


class Decision(enum.Enum):
    """The decision after an attempt at a part."""

    FINISHED = "finished"  # nothing remains; 6: some rows are failed or unknown
    RETRY = "retry"  # rows remain, `--resume` continues; a disk or this machine fails
    WAIT = "wait"  # another attempt has the ledger: try again later
    CANCEL = "cancel"  # no other attempt and no other part would fare better


_TABLE = {
    0: Decision.FINISHED,
    6: Decision.FINISHED,
    1: Decision.RETRY,
    3: Decision.RETRY,
    5: Decision.RETRY,
    7: Decision.WAIT,
    2: Decision.CANCEL,
    4: Decision.CANCEL,
}


def decide(code: int) -> Decision:
    """The decision for an exit code.

    Args:
        code: As `subprocess` reports it; negative if a signal ended the process.

    Returns:
        The decision. It is `RETRY` for a signal and for any code that Broadside does not document: the ledger is
        correct at every instant, so another attempt sends nothing twice.
    """
    return _TABLE.get(code, Decision.RETRY)
