#!/usr/bin/env python3
"""A command for the other judges that combines two builds of broadside. The build in BROADSIDE_COMMAND does the work.
For each ledger that a judge makes, and for each format, the output of its `ledger export` and `ledger verify` is
compared byte by byte with that of the build in BROADSIDE_BEFORE.

    BROADSIDE_BEFORE=OLD BROADSIDE_COMMAND=NEW python3 Tests/Judge/judge_lists.py Tests/Judge/as_before.py
    ... python3 Tests/Judge/judge_runs.py Tests/Judge/as_before.py
    ... python3 Tests/Judge/judge_texts.py Tests/Judge/as_before.py

It is for changes that must not change these outputs. If they differ, it keeps both and ends with exit code 99.
"""
import os
import subprocess
import sys
import tempfile

FORMATS = ("csv", "jsonl")


def told(command, words):
    done = subprocess.run([command, *words], stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode, done.stdout, done.stderr


def without(words, names):
    """Returns the words without these options and their values."""
    kept, skip = [], False
    for word in words:
        if not skip and word not in names:
            kept.append(word)
        skip = not skip and word in names
    return kept


def main():
    words = sys.argv[1:]
    before, after = os.environ["BROADSIDE_BEFORE"], os.environ["BROADSIDE_COMMAND"]
    if words[:2] == ["ledger", "export"]:
        plain = without(words, ("--output", "--format"))
        calls = [[*plain, "--format", name] for name in FORMATS]
    elif words[:2] == ["ledger", "verify"]:
        calls = [words]
    else:
        calls = []
    for call in calls:
        old, new = told(before, call), told(after, call)
        # After an error, the amount of output may differ.
        if old != new and (old[0] != new[0] or old[2] != new[2] or old[0] == 0):
            folder = tempfile.mkdtemp(prefix="broadside-differs-")
            for name, result in (("before", old), ("after", new)):
                with open(f"{folder}/{name}", "wb") as file:
                    file.write(result[1] + result[2])
            print(f"{' '.join(call)}: the builds differ: see {folder}", file=sys.stderr)
            sys.exit(99)
    if calls and os.environ.get("BROADSIDE_COMPARED"):
        with open(os.environ["BROADSIDE_COMPARED"], "a") as file:
            file.write(f"{len(calls)}\n")
    os.execv(after, [after, *words])


if __name__ == "__main__":
    main()
