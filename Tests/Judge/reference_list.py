"""Reads token lists by the words of the documentation alone: what each byte of a list means.

Nothing of Broadside's code is used. Well-formed lists are read a second time with Python's csv and
json modules, which have to agree (`agree_with_python`).
"""
import csv
import io
import json
import re

ROW_LIMIT = 1 << 20
MARK = b"\xef\xbb\xbf"
BLANKS = b" \t\r"
HEX = re.compile(rb"\A[0-9a-fA-F]+\Z")


class Row:
    """A row: where it lies in the list, and the text of its fields by column."""

    __slots__ = ("number", "line", "start", "end", "fields", "fault")

    def __init__(self, line, start, end, fields, fault=None):
        self.number = None
        self.line, self.start, self.end = line, start, end
        # Column name -> bytes, or None where the row has none; `Unusable` for arrays and objects.
        self.fields = fields
        self.fault = fault


class Unusable:
    """A JSON array or object in place of a value."""


class Refused(Exception):
    """The list as a whole is refused (exit 2)."""


def token_of(text):
    """The token in a field, in lower case; None where it is not one."""
    if text is None or text is Unusable:
        return None
    text = text.strip(BLANKS)
    if len(text) >= 2 and text[:1] == b"<" and text[-1:] == b">":
        text = bytes(byte for byte in text[1:-1] if byte not in BLANKS)
    if not 2 <= len(text) <= 200 or len(text) % 2 or not HEX.match(text):
        return None
    return text.lower().decode()


def lines_of(data, start):
    """(start, end with the line feed) of each physical line."""
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end + 1
        yield start, end
        start = end


def without_end(line):
    line = line[:-1] if line.endswith(b"\n") else line
    return line[:-1] if line.endswith(b"\r") else line


def read_lines(data, start):
    for number, (begin, end) in enumerate(lines_of(data, start), 1):
        if data[begin:end].strip(b" \t\r\n"):
            yield Row(number, begin, end, {"token": without_end(data[begin:end])})


def read_json(data, start):
    def refuse(word):
        raise ValueError(word)

    def number(text):
        return text.encode()

    for line, (begin, end) in enumerate(lines_of(data, start), 1):
        text = data[begin:end]
        if not text.strip(b" \t\r\n"):
            continue
        try:
            found = json.loads(without_end(text).decode(), parse_constant=refuse, parse_int=number,
                               parse_float=number)
            if not isinstance(found, dict):
                raise ValueError
        except (ValueError, RecursionError):
            yield Row(line, begin, end, {}, "not an object")
            continue
        yield Row(line, begin, end, found)


def json_field(row, name):
    """The value of a key, or of a path of keys; the whole name as a key comes first."""
    value = row.fields
    if name in value:
        value = value[name]
    else:
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return None
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return Unusable


def read_delimited(data, start, separator, is_blank):
    """Rows of fields: (line, start, end, fields, fault). RFC 4180; a character between a closing
    quote and the separator spoils the row, which ends at the next line break."""
    position, line = start, 1
    size = len(data)
    while position < size:
        end = data.find(b"\n", position)
        end = size if end < 0 else end + 1
        if is_blank(data[position:end]):
            position, line = end, line + 1
            continue
        begin, begin_line = position, line
        fields, fault = [], None
        while True:
            if data[position:position + 1] == b'"':
                value, position = bytearray(), position + 1
                while True:
                    quote = data.find(b'"', position)
                    if quote < 0:
                        fault, position = "open quote", size
                        break
                    value += data[position:quote]
                    if data[quote + 1:quote + 2] == b'"':
                        value += b'"'
                        position = quote + 2
                        continue
                    position = quote + 1
                    break
                if fault:
                    break
                follower = data[position:position + 1]
                if follower == b"\r" and data[position + 1:position + 2] in (b"\n", b""):
                    position += 1
                    follower = data[position:position + 1]
                if follower not in (separator, b"\n", b""):
                    fault = "text behind a closing quote"
                    stop = data.find(b"\n", position)
                    position = size if stop < 0 else stop + 1
                    break
                fields.append(bytes(value))
            else:
                here = data.find(separator, position)
                stop = data.find(b"\n", position)
                stop = size if stop < 0 else stop
                if here < 0 or here > stop:
                    here = stop
                value = data[position:here]
                if here == stop and value.endswith(b"\r"):
                    value = value[:-1]
                fields.append(value)
                position = here
            follower = data[position:position + 1]
            if follower == separator:
                position += 1
                continue
            position = min(size, position + 1)
            break
        line += data.count(b"\n", begin, position)
        yield begin_line, begin, position, fields, fault


def blank_test(separator):
    blanks = b" \r\n" if separator == b"\t" else b" \t\r\n"
    return lambda text: not text.strip(blanks)


class Reading:
    """A list as the documentation has it: rows in order, each with its token or its fault."""

    def __init__(self, data, form, separator=b",", column="token"):
        self.data, self.form, self.separator, self.column = data, form, separator, column
        start = len(MARK) if data.startswith(MARK) else 0
        self.names = None
        if form == "lines":
            rows = list(read_lines(data, start))
        elif form == "jsonl":
            rows = list(read_json(data, start))
        else:
            rows = list(self.rows_of_fields(start))
        for number, row in enumerate(rows):
            row.number = number
            if row.end - row.start - data[row.start:row.end].endswith(b"\n") > ROW_LIMIT:
                row.fault = "longer than 1 MiB"
        self.rows = rows

    def rows_of_fields(self, start):
        found = read_delimited(self.data, start, self.separator, blank_test(self.separator))
        header = next(found, None)
        if header is None:
            return
        if header[4]:
            raise Refused("the header is malformed")
        self.names = [name.strip(BLANKS).decode() for name in header[3]]
        if len(set(self.names)) != len(self.names):
            raise Refused("two columns of one name")
        place(self.names, self.column)
        for line, begin, end, fields, fault in found:
            row = Row(line, begin, end, fields, fault)
            yield row

    def field(self, row, name):
        if row.fault:
            return None
        if self.form == "lines":
            return row.fields["token"]
        if self.form == "jsonl":
            return json_field(row, name)
        index = place(self.names, name)
        return row.fields[index] if index < len(row.fields) else None

    def token(self, row):
        return token_of(self.field(row, self.column)) if not row.fault else None

    def reason(self, row):
        """Why a row is invalid; None where it has a token. A set where words leave it open."""
        if row.fault == "not an object":
            return {"MalformedRow", "MalformedToken"}
        if row.fault:
            return {"MalformedRow"}
        value = self.field(row, self.column)
        if value is None:
            return {"MissingColumn"}
        return None if token_of(value) else {"MalformedToken"}

    def agree_with_python(self):
        """Reads a well-formed list with Python's own modules; a difference is this file's fault."""
        if self.form in ("csv", "tsv") and not any(row.fault for row in self.rows):
            text = self.data.decode("utf-8-sig", "surrogateescape")
            if re.search("\r(?!\n)", text):
                return
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=self.separator.decode(),
                                strict=True)
            csv.field_size_limit(1 << 24)
            theirs = [row for row in reader if any(field.strip(" \t\r") for field in row)
                      or len(row) > 1 or '"' in "".join(row)]
            ours = [[field.decode("utf-8", "surrogateescape") for field in row.fields]
                    for row in self.rows]
            blank = [row for row in ours if row == [""]]
            if not blank:
                assert theirs[1:] == ours, "the reference and Python's csv disagree"


def place(names, wanted):
    if wanted in names:
        return names.index(wanted)
    alike = [index for index, name in enumerate(names) if name.lower() == wanted.lower()]
    if len(alike) != 1:
        raise Refused(f"no column {wanted}")
    return alike[0]
