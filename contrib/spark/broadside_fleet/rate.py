"""The rate of a campaign, divided among the parts that are being sent.

The driver writes a share for each part into one file. The task of each part reads this file once per second,
passes the share to Broadside through the control socket, and reports the number of the division that it has
applied. The sum of all shares in use is never above the total: a waiting part gets a share only when all others
have applied their smaller shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Optional

from .files import read_json, write_json


@dataclass
class RateDivider:
    """Divides a rate among the parts whenever they change.

    Attributes:
        total: Requests per second over all parts, at least 1.
        sequence: The number of the last division.
        published: For each part, the shares that it may have read, by the number of their division.
    """

    total: float
    sequence: int = 0
    published: dict[int, dict[int, int]] = field(default_factory=dict)

    def divide(self, active: Mapping[int, int]) -> dict[int, int]:
        """The next division.

        Args:
            active: Parts that are sent or wait for a share, with the number of the division that each
                has applied; 0: none yet.

        Returns:
            Requests per second by part. A part that is not in the result has to wait.
        """
        for part in list(self.published):
            if part not in active:
                del self.published[part]
        for part, applied in active.items():
            shares = self.published.get(part, {})
            # The part's current share is that of its last change up to the applied division.
            current = max((number for number in shares if number <= applied), default=0)
            self.published[part] = {
                number: share for number, share in shares.items() if number >= current}
        if not active:
            return {}
        # A share is at least 1, so that no more than `total` parts are sent at once.
        share = max(1, math.floor(self.total / len(active)))
        self.sequence += 1
        running = {part for part in active if self.published[part]}
        used = sum(max(share, *self.published[part].values()) for part in running)
        division = dict.fromkeys(running, share)
        for part in sorted(set(active) - running):
            if used + share > self.total and used > 0:
                break
            division[part] = share
            used += share
        # If only the number changes, nothing is stored, so that the table stays small.
        for part, value in division.items():
            shares = self.published[part]
            if not shares or shares[max(shares)] != value:
                shares[self.sequence] = value
        return division

    def write(self, path: Path, division: Mapping[int, int]) -> None:
        """Writes a division for the parts to read."""
        write_json(path, {
            "sequence": self.sequence, "total": self.total,
            "shares": {str(part): share for part, share in division.items()},
        }, durable=False)


def read_share(path: Path, part: int) -> Optional[tuple[int, int]]:
    """The number of the last division, and the part's share in requests per second; None if it has no share."""
    division: Optional[dict[str, Any]] = read_json(path, durable=False)
    if division is None or str(part) not in division["shares"]:
        return None
    return int(division["sequence"]), int(division["shares"][str(part)])
