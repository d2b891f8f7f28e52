"""Nights in a row. Their clocks are set forward one hour in the night after day 9, and back in the night after day 18.
Also reads the record of a server of `Tests/Servers`."""
import datetime
import json
import os
import time


class Month:
    """The days from the second at which day 1 begins (UTC). This process and the processes that it starts use this
    month's clocks."""

    def __init__(self, first):
        self.first = first
        os.environ["TZ"] = f"WIN-1SUM,{self.rule(10, 2)},{self.rule(19, 3)}"
        time.tzset()

    def date(self, day):
        return datetime.datetime.fromtimestamp(self.first + (day - 1) * 86400, datetime.timezone.utc)

    def rule(self, day, hour):
        """Returns a TZ rule for a change of the clocks in the night after `day`."""
        return f"{self.date(day + 1).timetuple().tm_yday - 1}/{hour}"

    def second_of(self, day, clock):
        """Returns the second at which clocks show a time on a day."""
        date = self.date(day)
        hour, minute = map(int, clock.split(":"))
        return int(time.mktime((date.year, date.month, date.day, hour, minute, 0, 0, 0, -1)))


class Record:
    """The record of a server, read up to an offset."""

    def __init__(self, path):
        self.path, self.offset = path, 0
        self.open, self.responses = set(), []

    def read(self):
        """Reads the lines that were added."""
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            added = file.read()
        added = added[:added.rfind(b"\n") + 1]
        self.offset += len(added)
        for line in map(json.loads, added.splitlines()):
            if line["event"] == "answer":
                self.responses.append(line)
            elif line["event"] == "preface":
                self.open.add(line["connection"])
            elif line["event"] in ("end", "failed"):
                self.open.discard(line["connection"])

    def new_responses(self):
        """Returns the responses since the last call. A server records a response after it was sent, but before the end of
        its connection."""
        until = time.monotonic() + 60
        while True:
            self.read()
            if not self.open or time.monotonic() > until:
                found, self.responses = self.responses, []
                return found
            time.sleep(0.02)
