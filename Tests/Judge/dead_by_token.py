#!/usr/bin/env python3
"""The test server of `Tests/Servers` with responses that depend only on the token, so that a judge
can compute them."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Servers"))
import apns  # noqa: E402
from judged_command import fate  # noqa: E402


def by_token(self, stream, path, count):
    reason = fate(path.rsplit("/", 1)[-1])
    if reason == "Unregistered":
        return self.json(stream, 410, {"reason": reason, "timestamp": 1_700_000_000_000})
    if reason:
        return self.json(stream, 400, {"reason": reason})
    return self.accept(stream)


apns.BEHAVIOURS["by-token"] = by_token

if __name__ == "__main__":
    apns.main()
