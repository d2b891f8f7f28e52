#!/usr/bin/env python3
"""`apns.py` for a campaign whose arms differ in their headers: the action of each answer is the request's
apns-collapse-id and apns-priority, `-` for one that it does not have.
"""
import apns


class Connection(apns.Connection):
    """Remembers each stream's headers."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.headers = {}

    def handle(self, kind, flags, stream, payload):
        if kind != apns.HEADERS:
            return super().handle(kind, flags, stream, payload)
        block = self.walk.block

        def remember(data):
            fields = block(data)
            self.headers[stream] = {field["name"]: field["value"] for field in fields}
            return fields

        self.walk.block = remember
        try:
            super().handle(kind, flags, stream, payload)
        finally:
            self.walk.block = block


def by_arm(self, stream, path, count):
    headers = self.headers.pop(stream)
    self.accept(stream)
    return " ".join(headers.get(name, "-") for name in ("apns-collapse-id", "apns-priority"))


apns.BEHAVIOURS["arms"] = by_arm

if __name__ == "__main__":
    apns.main(Connection)
