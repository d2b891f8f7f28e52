"""A month of nights. Its clocks are set forward one hour in the night after day 9, and back in the night after day 18.
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


def answers(record):
    """Returns the responses so far. A server records a response after it was sent."""
    count = -1
    while True:
        text = open(record).read()
        lines = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
        found = [line for line in lines if line["event"] == "answer"]
        opened = {line["connection"] for line in lines if line["event"] == "preface"}
        ended = {line["connection"] for line in lines if line["event"] in ("end", "failed")}
        if opened <= ended or count == len(found):
            return found
        count = len(found)
        time.sleep(0.3)
