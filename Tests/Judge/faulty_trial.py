"""Lists with a fault that hides where the rows begin, and the way in which each command handles them."""
import os

from judged_command import expect


class FaultyTrial:
    """The part of a trial for such a list. The trial has `path`, `list`, `fault`, `draw` and `command`."""

    def refused_by_all(self, named):
        """From a line on, it is unknown where rows begin. All commands must name this line, and do nothing."""
        self.plain_run()
        left = sorted(os.listdir(self.directory))
        with open(f"{self.directory}/{self.path}", "rb") as file:
            stdin = file.read()
        form = ["--format", self.list.form]
        calls = [
            ["tokens", "check", *named],
            ["tokens", "check", "--duplicates", "--json", "--max-invalid", "100", *named],
            ["tokens", "check", "--tokens", "-", *form, *self.column],
            ["tokens", "dedupe", *named, "--output", "once"],
            ["prune", "--ledger", "plain", *named, "--output", "pruned", "--removed", "gone"],
            self.send("--ledger", "none"), self.send("--dry-run"), self.send("--preview", "1"),
            self.send("--ledger", "none", "--shard", f"{self.rng.randint(1, 3)}/3"),
            self.send("--ledger", "none", "--duplicates", "skip"),
            self.send("--ledger", "none", "--canary", "1", "--limit", "2"),
            [word if word != self.path else "-" for word in self.send("--ledger", "none", *form)],
        ]
        if self.list.column == "token":
            calls.append(self.plain("--ledger", "none", "--suppress", self.path))
        for call in self.drawn(calls):
            self.command(*call, input=stdin, codes=[2])
            expect(f"line {self.fault.line} " in self.command.said, "the line of a fault",
                   " ".join(call), self.command.said, str(self.fault))
        expect(sorted({*os.listdir(self.directory)} - {"payload.json"})
               == sorted({*left} - {"payload.json"}), "something was left behind",
               os.listdir(self.directory))
        expect(not self.server.requests(), "a faulty list was sent")

    def drawn(self, calls):
        """Returns all calls, or with `--drawn` those that the list's seed chooses."""
        return self.draw.sample(calls, 5) if self.draw else calls

    def plain_run(self):
        """Makes a ledger for the commands that need one. Its list has one token, of a dead device."""
        with open(f"{self.directory}/plain.txt", "w") as file:
            file.write("0001" + "ab" * 30 + "\n")
        with open(f"{self.directory}/plain.json", "w") as file:
            file.write('{"aps":{"alert":"Good evening"}}')
        self.command(*self.plain("--ledger", "plain"), codes=[0])
        self.server.requests(1)

    def plain(self, *options):
        """Returns a send of that list, with a payload that needs no columns of the faulty list."""
        others = {self.path: "plain.txt", "payload.json": "plain.json"}
        return [others.get(word, word) for word in self.send()
                if word not in self.column] + list(options)
