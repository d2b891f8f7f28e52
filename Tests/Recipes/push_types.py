#!/usr/bin/env python3
"""Holds the table of docs/how-to/push-types.md against the command and its simulator.

    push_types.py PAGE CAMPAIGN BUNDLE_ID

Of each row: a payload of the largest size can be sent, one of a byte more cannot; the topic is taken,
the bundle ID without its suffix is not; a simulator accepts topic, type and priority. Ends with 1 if the
table says anything else.
"""
import json
import re
import subprocess
import sys
import time

PAGE, CAMPAIGN, BUNDLE = sys.argv[1:]
APS = {
    "background": {"content-available": 1},
    "widgets": {"content-changed": True},
    "liveactivity": {"timestamp": int(time.time()), "event": "update", "content-state": {}},
    "accessory": {"encryptedData": "", "sessionIdentifier": "", "keyID": "", "messageIndex": "1"},
}


def payload(push_type, size):
    """A payload of so many bytes."""
    content = {"mdm": ""} if push_type == "mdm" else {
        "aps": APS.get(push_type, {"alert": "Hello"}), "filler": ""}
    filled = list(content)[-1]
    content[filled] = "x" * (size - len(json.dumps(content, separators=(",", ":"))))
    with open("measured.json", "w") as file:
        json.dump(content, file, separators=(",", ":"))


def broadside(*words):
    return subprocess.run(["broadside", *words], capture_output=True, text=True)


def main():
    wrong = []
    rows = re.findall(r"(?m)^\| `(\w+)` \| (.*?) \| (.*?) \| (\d+) bytes \| (.*?) \|$", open(PAGE).read())
    for push_type, topic, priority, size, credential in rows:
        suffix = re.search(r"\+ `(.*)`", topic)
        topic = "com.apple.mgmt.External.x" if push_type == "mdm" else BUNDLE + (suffix[1] if suffix else "")
        check = ["payload", "check", "--payload", "measured.json", "--push-type", push_type]
        payload(push_type, int(size) + 1)
        if broadside(*check).returncode != 2:
            wrong.append(f"{push_type}: {size} bytes are not the limit")
        payload(push_type, int(size))
        for said in [broadside(*check, "--topic", topic).stderr]:
            if said:
                wrong.append(f"{push_type}: {said}")
        if suffix and broadside(*check, "--topic", BUNDLE).returncode != 2:
            wrong.append(f"{push_type}: the suffix is not needed")
        if push_type == "mdm":
            continue
        send = ["send", "--campaign", CAMPAIGN, "--push-type", push_type, "--topic", topic, "--payload",
                "measured.json", "--limit", "20"]
        if push_type == "voip":
            send += ["--tokens", "apns/tokens-voip.txt"]
        allowed = re.findall(r"\d+", priority.split(";")[0])
        for value in ["10", "5", "1"]:
            if value not in allowed:
                if broadside(*send, "--priority", value, "--dry-run").returncode != 2:
                    wrong.append(f"{push_type}: priority {value} is not refused")
                continue
            sent = broadside(*send, "--priority", value, "--ledger", f"table-{push_type}-{value}")
            if sent.returncode != 0:
                wrong.append(f"{push_type}, priority {value}: {sent.stderr}")
    names = {row[0] for row in rows}
    expected = {"alert", "background", "voip", "complication", "fileprovider", "location", "pushtotalk",
                "controls", "widgets", "liveactivity", "mdm", "accessory"}
    if names != expected or len(rows) != len(expected):
        wrong.append(f"the table's types: {sorted(names ^ expected)}")
    sys.exit("\n".join(wrong) or 0)


main()
