#!/usr/bin/env python3
"""`apns.py` for a campaign whose arms differ in their headers: the action of each answer is the request's
apns-collapse-id and apns-priority, `-` for one that it does not have.
"""
import apns


def by_arm(self, stream, path, count):
    self.accept(stream)
    return " ".join(self.header(stream, name, "-") for name in ("apns-collapse-id", "apns-priority"))


apns.BEHAVIOURS["arms"] = by_arm

if __name__ == "__main__":
    apns.main(apns.RememberingConnection)
