#!/usr/bin/env python3
"""`apns.py` whose devices die: `--fates FILE` has a JSON object with the status, reason and timestamp of each token
that is not accepted, read again for each request. The action of an answer is its status.
"""
import json

import apns


def mortal(self, stream, path, count):
    with open(self.options.fates) as file:
        fate = json.load(file).get(path.split("/")[-1])
    if fate is None:
        self.accept(stream)
        return "200"
    status, reason, timestamp = fate
    self.json(stream, status, {"reason": reason, **({"timestamp": timestamp} if timestamp else {})})
    return str(status)


def add_options(parser):
    parser.add_argument("--fates")


apns.BEHAVIOURS["mortal"] = mortal

if __name__ == "__main__":
    apns.main(add_options=add_options)
