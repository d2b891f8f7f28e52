#!/usr/bin/env python3
"""`apns.py` for a campaign whose rows name their topics: the action of each answer is the request's topic and
the status, and the topics of `--refuse TOPIC=STATUS:REASON` are refused.
"""
import apns


def by_topic(self, stream, path, count):
    topic = self.header(stream, "apns-topic")
    answer = dict(self.options.refuse).get(topic)
    if answer is None:
        self.accept(stream)
        return f"{topic} 200"
    status, reason = answer
    self.json(stream, status, {"reason": reason})
    return f"{topic} {status}"


def refusal(text):
    topic, _, answer = text.partition("=")
    status, _, reason = answer.partition(":")
    return topic, (int(status), reason)


def add_options(parser):
    parser.add_argument("--refuse", type=refusal, action="append", default=[])


apns.BEHAVIOURS["topics"] = by_topic

if __name__ == "__main__":
    apns.main(apns.RememberingConnection, add_options)
