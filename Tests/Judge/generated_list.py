"""Generates token lists from seeds: in every format, well-formed or not, and with content as in exports of real
tables."""
import gzip
import json
import random
import subprocess

NAMES = ["Bob", "", "Zoë", "O'Neil", 'say "hi"', "a,b", "a;b", "tab\there", "two\nlines", "{{x}}",
         "\\u0041", "Jörg 🎉", "=1+1", "<b>", "comma, and \"quote\"", "line\r\nbreak", " blank ",
         "null", "-", "e\u0301clair", "\u202e", "back\\slash", "/", "\x7f"]


# Quoted text with lines that are not rows, and quotes as programs without quoting rules write them.
TEXTS = ["1 Long Road\nTown", "1234\n5678", "2000, Antwerp\nEd", "a\n\n\"b\"\n", "x\r\ny, z\r\n"]
STRAY = ['"Bob', 'Bob"', '"', '""', '"Bob"', '5" disk', '"a"b"', '""a""', '"a""b"', "\\N", "\\NN", '"\\N"',
         "\\\\N"]


def token(rng):
    kind = rng.random()
    if kind < 0.85:
        count = 32
    elif kind < 0.93:
        count = 80
    else:
        count = rng.randint(1, 100)
    # Tokens are long enough that no two tokens of a run are equal by chance.
    return rng.randbytes(max(count, 8)).hex()


def spelled(rng, text, form):
    """Returns a token as lists may write it."""
    draw = rng.random()
    if draw < 0.8:
        return text
    if draw < 0.88:
        return text.upper()
    if draw < 0.92:
        return f"  {text} "
    if draw < 0.96:
        parts = [text[i:i + 8] for i in range(0, len(text), 8)]
        return "<" + " ".join(parts) + ">"
    return text + (" " if form == "tsv" else "\t")


def no_token(rng, text):
    return rng.choice(["zz", text[:-1], text + "0" * 202, "", "0x" + text, text[:6] + " " + text[6:],
                       "-", "NULL", text + "g", "é" * 8, "a"])


class GeneratedList:
    """A list's bytes, and the options with which Broadside reads it."""

    def __init__(self, seed, rows=None, malformed=None):
        rng = self.rng = random.Random(seed)
        self.seed = seed
        self.form = rng.choice(["lines", "csv", "csv", "tsv", "jsonl", "jsonl"])
        self.separator = b"\t" if self.form == "tsv" else rng.choice([b",", b",", b";"])
        self.column = "token"
        self.count = rows or rng.choice([1, 2, 3, 5, 8, 13, 20, 40])
        self.faults = rng.choice([0, 0, 0.03, 0.1]) if malformed is None else malformed
        self.line_end = rng.choice(["\n", "\n", "\n", "\r\n", "\r\n", "\r"])
        # A fault that hides where rows begin.
        self.trap = rng.choice(["quote", "pair", "row", "return", "return"]) \
            if rng.random() < (0.2 if malformed is None else malformed) else ""
        self.tokens = [token(rng) for _ in range(self.count)]
        self.long_row = rows is None and rng.random() < 0.04
        parts = {"lines": self.lines, "jsonl": self.json}.get(self.form, self.delimited)()
        self.data = self.joined(parts)
        self.packing = rng.choice(["", "", ".gz", ".zst"])
        ending = {"lines": ".txt", "csv": ".csv", "tsv": ".tsv", "jsonl": ".jsonl"}[self.form]
        self.name = "list" + ending + self.packing

    def pick(self):
        """Returns any token of the list."""
        rng = self.rng
        return rng.choice(self.tokens)

    def written(self, index):
        rng = self.rng
        text = self.tokens[index] if rng.random() < 0.9 else self.pick()
        if rng.random() < self.faults:
            return no_token(rng, text)
        return spelled(rng, text, self.form)

    def joined(self, rows):
        rng = self.rng
        pieces = []
        if rng.random() < 0.15:
            pieces.append(b"\xef\xbb\xbf")
        for index, row in enumerate(rows):
            if rng.random() < 0.04 and self.form != "tsv":
                pieces.append(rng.choice([b"", b" ", b"  "]) + self.line_end.encode())
            pieces.append(row if isinstance(row, bytes) else row.encode())
            is_last = index == len(rows) - 1
            if self.trap == "return" and rng.random() < 2 / len(rows):
                pieces.append(rng.choice([b"\r", b"\r", b"\r\r\n", b"\n \r \n", b"\r\n", b"\n"]))
            elif not is_last or rng.random() < 0.8:
                pieces.append(self.line_end.encode())
        return b"".join(pieces)

    def lines(self):
        rows = []
        for index in range(self.count):
            text = self.written(index)
            rows.append(text if text.strip() else "x")
        return rows

    def long_text(self):
        """Returns a text that makes a row longer than a chunk, and shorter or longer than the longest valid row."""
        return "x" * self.rng.choice([60_000, 65_536, 70_000, 300_000, 1_000_000, 1_048_300,
                                      1_048_700, 1_500_000])

    def quoted(self, text, force=False):
        separator = self.separator.decode()
        needs = any(c in text for c in '"\n\r' + separator) or force or self.rng.random() < 0.2
        if not needs:
            return text
        return '"' + text.replace('"', '""') + '"'

    def with_trap(self, rows):
        """Adds quotes that swallow rows. `rows` has the fields of each row, as they are written."""
        rng, separator = self.rng, self.separator.decode()
        if self.trap == "row":
            fields = rng.choice(rows)
            lines = [separator.join(fields), self.pick(), self.pick() + separator, "x"]
            text = "\n".join(rng.sample(lines, rng.randint(1, 3)) + ["y"])
            fields[rng.randrange(len(fields))] = '"' + text.replace('"', '""') + '"'
        elif self.trap in ("quote", "pair"):
            first = rng.randrange(len(rows))
            fields = rows[first]
            place = rng.randrange(len(fields))
            fields[place] = '"' + fields[place]
            if self.trap == "pair" and rng.random() < 0.5:
                fields = rows[rng.randrange(first, len(rows))]
                fields[rng.randrange(len(fields))] += '"'
            elif self.trap == "pair":
                # Both in the same column, as if a name had a quote: only one row has lost its end.
                fields = rows[min(first + 1, len(rows) - 1)]
                fields[min(place, len(fields) - 1)] += '"'
        return [separator.join(fields) for fields in rows]

    def delimited(self):
        rng = self.rng
        # Programs that write tables with tabs may or may not use quotes.
        is_bare = self.form == "tsv" and rng.random() < 0.6
        columns = ["token", "name", "lang"] + ["c%d" % i for i in range(rng.randint(0, 3))]
        rng.shuffle(columns)
        header = list(columns)
        if rng.random() < 0.15:
            header[header.index("token")] = rng.choice(["Token", "TOKEN"])
        if rng.random() < 0.02:
            header.append(rng.choice(header))
        separator = self.separator.decode()
        rows = []
        head = separator.join(self.quoted(name) for name in header)
        for index in range(self.count):
            values = []
            for name in columns:
                if name == "token":
                    text = self.written(index)
                elif name == "name":
                    text = rng.choice(NAMES + (STRAY if is_bare else TEXTS))
                    if self.form == "tsv" and rng.random() < 0.9:
                        text = text.replace("\n", " ").replace("\r", " ")
                    if is_bare:
                        text = text.replace("\t", " ")
                    if self.long_row and rng.random() < 0.1:
                        text = self.long_text()
                else:
                    text = rng.choice(["de", "pt_BR", "en-GB", "", "x y"])
                values.append(text if is_bare else self.quoted(text))
            if rng.random() < self.faults / 2:
                values += rng.choice([[""], ["more"], ['"x"'], ["x", "y"]])
            if rng.random() < self.faults / 2:
                values = values[:rng.randint(1, len(values))]
            if rng.random() < self.faults / 2:
                spoiled = rng.randrange(len(values))
                values[spoiled] = rng.choice([
                    '"Bob\nB' + separator + 'Cy\nC' + separator + '"Di', '"a"b', '"a" ', '"a""b"c"',
                    ' "a"', 'a"b', '""x""'])
            rows.append(values)
        rows = [head, *self.with_trap(rows)]
        if rng.random() < self.faults / 4:
            rows.append('"' + self.pick() + separator + "never closed")
        return rows

    def json_text(self, text):
        """Returns a JSON string, with or without escapes, as a program may write it."""
        draw = self.rng.random()
        if draw < 0.3:
            return json.dumps(text)
        if draw < 0.5 and text:
            place = self.rng.randrange(len(text))
            units = text[place].encode("utf-16-be")
            escape = "".join("\\u%02x%02x" % (units[i], units[i + 1])
                             for i in range(0, len(units), 2))
            return (json.dumps(text[:place], ensure_ascii=False)[:-1] + escape
                    + json.dumps(text[place + 1:], ensure_ascii=False)[1:])
        return json.dumps(text, ensure_ascii=False)

    def json(self):
        rng = self.rng
        is_nested = rng.random() < 0.25
        if is_nested:
            self.column = "device.token"
        rows = []
        for index in range(self.count):
            value = self.json_text(self.written(index))
            if rng.random() < self.faults:
                value = rng.choice(["null", "12", "true", "[]", "{}", "1234.5", '""'])
            pairs = []
            name_text = rng.choice(NAMES)
            if self.long_row and rng.random() < 0.1:
                name_text = self.long_text()
            name_value = self.json_text(name_text)
            if rng.random() < 0.05:
                name_value = rng.choice(["null", "7", "false", "-1.5e3"])
            if is_nested:
                pairs.append((self.json_text("device"), "{%s:%s%s}" % (
                    self.json_text("token"), value, rng.choice(["", ',"os":"18"']))))
            else:
                if rng.random() < 0.08:
                    # If keys are equal, the last one counts.
                    pairs.append((self.json_text("token"), self.json_text(token(rng))))
                pairs.append((self.json_text("token"), value))
            others = [(self.json_text("name"), name_value),
                      (self.json_text("pr\u00e9nom"), self.json_text(rng.choice(NAMES))),
                      ('"x"', rng.choice(["1", "[1,{\"token\":\"zz\"}]", "{\"token\":\"zz\"}"]))]
            for pair in rng.sample(others, rng.randint(0, 3)):
                pairs.insert(rng.choice([0, len(pairs)]), pair)
            if rng.random() < self.faults / 3:
                pairs = [pair for pair in pairs if "oken" not in pair[0] + pair[1]]
            row = "{" + ",".join(key + rng.choice([":", ": "]) + value for key, value in pairs) + "}"
            if rng.random() < self.faults / 3:
                row = rng.choice([row[:-1], "[]", "7", row + "x", "nul", '"a"', row + row])
            rows.append(row)
        return rows

    def write(self, directory):
        """Writes the list, and returns its path."""
        path = f"{directory}/{self.name}"
        data = self.data
        if self.packing == ".gz":
            middle = self.rng.randint(0, len(data))
            data = (gzip.compress(data[:middle], 1) + gzip.compress(data[middle:], 1)
                    if self.rng.random() < 0.3 else gzip.compress(data, 1))
        elif self.packing == ".zst":
            data = subprocess.run(["zstd", "-1", "-q", "-c"], input=data, check=True,
                                  capture_output=True).stdout
        with open(path, "wb") as file:
            file.write(data)
        return path
