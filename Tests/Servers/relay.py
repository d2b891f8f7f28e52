#!/usr/bin/env python3
"""A relay in front of APNs that insists on a content-length, as many do: `apns.py` that answers 411 with
a page of its own where there is none, and 400 where it is not the body's."""
import apns
from apns import DATA, END_HEADERS, END_STREAM, HEADERS

PAGE = b"<html><body>411 Length Required</body></html>"


class Connection(apns.Connection):
    """Remembers what requests say of their length, and how."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.lengths = {}
        walk = self.walk.block

        def block(payload):
            self.fields = walk(payload)
            return self.fields

        self.walk.block = block

    def handle(self, kind, flags, stream, payload):
        super().handle(kind, flags, stream, payload)
        if kind == HEADERS:
            self.lengths[stream] = [
                field["value"] for field in self.fields if field["name"] == "content-length"]

    def request(self, stream):
        self.count = len(self.bodies[stream])
        super().request(stream)


def insist(self, stream, path, count):
    lengths = self.lengths.pop(stream)
    if not lengths:
        self.answer(
            stream,
            self.frame(HEADERS, END_HEADERS, stream, b"\x08\x03411\x0f\x10\x09text/html"),
            self.frame(DATA, END_STREAM, stream, PAGE))
        return "length-required"
    if lengths != [str(self.count)]:
        self.json(stream, 400, {"reason": "BadLength"})
        return f"wrong: {lengths} of {self.count}"
    return self.accept(stream)


apns.BEHAVIOURS["insist"] = insist

if __name__ == "__main__":
    apns.main(connection=Connection)
