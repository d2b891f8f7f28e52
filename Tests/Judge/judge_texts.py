#!/usr/bin/python3
"""Puts hostile texts into every format that Broadside writes, and reads them with parsers of other projects.

    Tests/Judge/judge_texts.py BROADSIDE [COUNT [FIRST-SEED]]

A campaign's name, its alert, rows without a valid token and the reasons of a server are random texts that may break
escapes. Python's json, csv and html.parser and Prometheus' own client read log, summary, exports, report and metrics.
Each text must come back unchanged, without anything else.
"""
import csv
import html.parser
import io
import json
import os
import random
import re
import sys

from prometheus_client.parser import text_string_to_metric_families

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from judged_command import ServedTrials, expect, judge  # noqa: E402

PIECES = [
    "<", ">", "&", "\"", "'", "`", "\\", "/", "=", "+", "-", "@", ",", ";", "{", "}", "{{", "%", "$", "#",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</title>", "</td></tr></table>",
    "<!--", "-->", "]]>", "&lt;", "&#60;", "javascript:", "\" onmouseover=\"x", "' onfocus='x",
    "\u0338", "\u0301", "\u200d", "\ufe0f", "<\u0338", "\"\u0301", "\\\u0301", "&\u20dd", "\u0600<",
    "\u1100\u1161", "\U0001f468\u200d\U0001f469", "\U000e0001", "\ufeff", "\ufffd", "\uffff",
    "\x1b[2J", "\x1b]0;x\x07", "\x9b31m", "\x85", "\x7f", "\x00", "\x01", "\r", "\n", "\r\n", "\t", "\x0b",
    "\u2028", "\u2029", "\u202e", "\u2066", "\u2069", "\u200e", "\u061c", "=1+1", "+1", "@SUM(1)",
    "a", "Z", "0", " ", "  ", "ok", "é", "日本", "Bad Device Token", "x" * 30,
]
INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def cell(text):
    """Returns a text as CSV has it. No spreadsheet takes it for a formula."""
    return ("'" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else "") + text


# The elements of the report. Any other element would come from a text.
TAGS = set("""html head meta title style body main header h1 h2 h3 p div span table thead tbody tr th td ul ol
li dl dt dd a b strong em code pre svg g path line polyline polygon rect circle text tspan details summary
section article footer figure figcaption small br time abbr button script defs clippath desc link""".split())


def shown(text):
    """Returns a text as messages, report and metrics show it: invisible characters as their numbers."""
    return INVISIBLE.sub(
        lambda match: SHORT.get(match.group(), f"\\u{{{ord(match.group()):x}}}"), text)


def as_written(reason):
    """Returns a reason as a response body has it, and the ledger stores it: escaped, without its quotes."""
    return json.dumps(reason, ensure_ascii=False)[1:-1].strip(" ")


class Page(html.parser.HTMLParser):
    """The elements of a page, the names of their attributes, and the page's text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.text, self.others, self.styles = set(), [], [], []
        self.inside = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.inside.append(tag)
        for name, value in [("", ""), *attributes]:
            self.elements.add((tag, name))
            if name in ("title", "aria-label", "alt"):
                self.text.append(value or "")

    def handle_data(self, data):
        self.text.append(data)

    def handle_comment(self, data):
        self.others.append(data)

    unknown_decl = handle_pi = handle_comment


class Trial:
    """One campaign with texts that its seed chooses."""

    def __init__(self, seed, command, server, home, known):
        self.rng = random.Random(seed)
        self.command, self.server, self.home, self.known = command, server, home, known

    def text(self, low=1, high=8):
        return "".join(self.rng.choice(PIECES) for _ in range(self.rng.randint(low, high)))

    def run(self):
        directory = self.command.directory
        # A name has at most 200 bytes, and no control characters.
        name = INVISIBLE.sub("", self.text())[:60] or "x"
        reasons = list({as_written(text): text for text in (self.text() for _ in range(6))}.values())
        with open(f"{self.home}/reasons.json", "w", encoding="utf-8") as file:
            json.dump(reasons, file)
        reasons = [as_written(reason) for reason in reasons]
        tokens = [f"{number:064x}" for number in range(len(reasons) + 20)]
        # Rows are identified by their line. A line break would make two rows of one.
        malformed = [re.sub("[\x00\r\n]", "", self.text()) for _ in range(3)]
        malformed = [row if row.strip(" \t") else "x" for row in malformed]
        with open(f"{directory}/t.txt", "w", encoding="utf-8", newline="") as file:
            file.write("".join(f"{row}\n" for row in tokens + malformed))
        alert = {"title": self.text(), "body": self.text()}
        with open(f"{directory}/p.json", "w", encoding="utf-8") as file:
            json.dump({"aps": {"alert": {key: value.replace("{{", "{") for key, value
                                         in alert.items()}}}, file)
        out = self.command(
            "send", "--tokens", "t.txt", "--format", "lines", "--payload", "p.json", *self.server.options(),
            "--ledger", "L", f"--name={name}", "--log", "json", "--summary", "-", "--metrics", "m.txt",
            "--report", "r.html", "--max-invalid", "100", "--abort-after", "1000", codes=[0])
        # The ledger cuts texts at 64 bytes. Texts of a run may be longer.
        cut = [reason.encode()[:64].decode(errors="replace") for reason in reasons]
        self.log(name)
        self.summary(json.loads(out), name, reasons)
        self.metrics(name)
        self.page("r.html", [name, *(text.replace("{{", "{") for text in alert.values())])
        self.exports(tokens + malformed, cut)
        self.command("ledger", "stats", "--ledger", "L", codes=[0])
        json.loads(self.command("ledger", "stats", "--ledger", "L", "--json", codes=[0]))
        json.loads(self.command("ledger", "find", "--ledger", "L", "--json", "--token", tokens[0],
                                codes=[0]))
        self.command("send", "--tokens", "t.txt", "--payload", "p.json", *self.server.options(),
                     "--ledger", "M", f"--name={name}", "--max-invalid", "100", "--abort-after", "1000",
                     "--format", "lines", codes=[0])
        self.command("report", "--all", "L", "M", "--output", "n.html", codes=[0])
        self.page("n.html", [name])

    def log(self, name):
        lines = [line for line in self.command.said.split("\n") if line.startswith("{")]
        expect(len(lines) >= 3, "log: too few lines", self.command.said)
        for line in lines:
            entry = json.loads(line)
            expect(entry["name"] == name, "log: name", entry["name"], name)

    def summary(self, summary, name, reasons):
        expect(summary["name"] == name, "summary: name", summary["name"], name)
        for found in summary["reasons"]:
            expect(found in ("MalformedToken", "(no reason)")
                   or any(reason.startswith(found.rstrip("\ufffd…")) for reason in reasons),
                   "summary: reason", found, reasons)

    def metrics(self, name):
        with open(f"{self.command.directory}/m.txt", encoding="utf-8", newline="\n") as file:
            text = file.read()
        expect(not INVISIBLE.search(text.replace("\n", "")), "metrics: invisible characters", text)
        families = {family.name: family for family in text_string_to_metric_families(text)}
        labels = families["broadside_info"].samples[0].labels
        expect(labels["name"] == shown(name)[:len(labels["name"])] and
               len(labels["name"]) >= min(len(shown(name)), 100), "metrics: name", labels, shown(name))
        self.known.setdefault("families", set(families))
        expect(set(families) == self.known["families"], "metrics: families",
               set(families) ^ self.known["families"])
        refused = families["broadside_rows_refused"].samples
        expect(all(set(sample.labels) == {"reason"} for sample in refused), "metrics: labels", refused)

    def page(self, file, texts):
        with open(f"{self.command.directory}/{file}", encoding="utf-8", newline="\n") as file:
            text = file.read()
        expect(not INVISIBLE.search(text.replace("\n", "")), "report: invisible characters")
        page = Page(text)
        tags = {tag for tag, _ in page.elements}
        expect(tags <= TAGS, "report: elements", tags - TAGS)
        expect(not page.others, "report: comments", page.others)
        handlers = {pair for pair in page.elements if pair[1].startswith("on")}
        expect(not handlers, "report: attributes", handlers)
        expect(("script", "") not in page.elements or "script" in self.known.get("tags", tags),
               "report: a script")
        self.known.setdefault("tags", tags)
        words = "".join(page.text)
        for what in texts:
            expect(shown(what) in words or shown(what.strip()) in words, "report: text",
                   shown(what), words[:3000])

    def exports(self, rows, reasons):
        text = self.command("ledger", "export", "--ledger", "L", "--tokens", "t.txt", codes=[0])
        csv_rows = list(csv.DictReader(io.StringIO(text.decode(), newline="")))
        text = self.command("ledger", "export", "--ledger", "L", "--tokens", "t.txt", "--format",
                            "jsonl", codes=[0])
        json_rows = [json.loads(line) for line in text.decode().split("\n")[:-1]]
        expect(len(csv_rows) == len(json_rows) == len(rows), "export: rows", len(csv_rows),
               len(json_rows), len(rows))
        for number, (row, cells, members) in enumerate(zip(rows, csv_rows, json_rows)):
            row = row.encode()[:200].decode(errors="replace")
            expect(cells["token"] == cell(row), "csv: token", cells, row)
            expect(members["token"] == row, "jsonl: token", members, row)
            if number < len(reasons):
                reason = reasons[number]
                expect(cells["reason"] == cell(reason), "csv: reason", cells, reason)
                expect((members["reason"] or "") == reason, "jsonl: reason", members, reason)
                expect(members["status"] == 400 and members["state"] == "rejected", "state", members)


def main():
    known = {}
    trials = ServedTrials(
        lambda seed, command, server: Trial(
            seed, command, server, os.path.dirname(command.directory), known).run(),
        "hostile_texts.py", "by-number")
    judge("texts", 100, 10, trials.begin, lambda results, failed: (
        f"{results.total()} campaigns told truly in all forms, {failed} not"), trials.end)


if __name__ == "__main__":
    main()
