"""Reads rows as the documentation describes them: the meaning of each byte of a row. See `reference_list`."""
import csv
import json
import re

csv.field_size_limit(1 << 24)

ROW_LIMIT = 1 << 20
MARK = b"\xef\xbb\xbf"
BLANKS = b" \t\r"
HEX = re.compile(rb"\A[0-9a-fA-F]+\Z")


class Row:
    """A row: its position in the list, and the text of its fields by column."""

    __slots__ = ("number", "line", "start", "end", "fields", "fault")

    def __init__(self, line, start, end, fields, fault=None):
        self.number = None
        self.line, self.start, self.end = line, start, end
        # Column name -> bytes, or None if the row lacks the column; `Unusable` for arrays and objects.
        self.fields = fields
        self.fault = fault


class Unusable:
    """A JSON array or object in place of a value."""


class Refused(Exception):
    """The list as a whole is refused (exit 2)."""


class Faulty(Refused):
    """From a line on, it is unknown where rows begin."""

    def __init__(self, words, line):
        super().__init__(f"{words} on line {line}")
        self.line = line


def with_line_feeds(data):
    """If a list's first line ends with only a carriage return, its other lines may end in the same way. Returns the
    list with line feeds."""
    first = re.search(b"[\r\n]", data)
    if first and data[first.start():first.start() + 2] != b"\r\n" and first.group() == b"\r":
        return re.sub(b"\r(?!\n)", b"\n", data)
    return data


def check_returns(data, start, end, line):
    """Outside quotes, a carriage return must come before a line feed or at the list's end."""
    place = data.find(b"\r", start, end)
    while place >= 0:
        if data[place + 1:place + 2] not in (b"\n", b""):
            raise Faulty("a carriage return", line + data.count(b"\n", start, place))
        place = data.find(b"\r", place + 1, end)


class Shape:
    """The rule by which a line inside quotes counts as a row with a device token."""

    def __init__(self, separator, token_place, column_count):
        self.separator, self.place, self.count = separator.decode(), token_place, column_count

    def is_row(self, line):
        fields = self.fields(line)
        digits = self.digits(fields, self.place)
        return digits >= 32 or digits >= 8 and len(fields) == self.count

    def is_rest_of_row(self, line, before):
        """Whether the line behind an opening quote is a row together with the fields before the quote."""
        fields = self.fields(line)
        return (0 < before < self.place and before + len(fields) <= self.count
                and self.digits(fields, self.place - before) >= 32)

    def fields(self, line):
        text = line.rstrip(b"\r").replace(b"\r", b"?").decode("latin-1")
        return next(csv.reader([text], delimiter=self.separator), [])

    @staticmethod
    def digits(fields, place):
        if len(fields) <= place:
            return 0
        return len(token_of(fields[place].replace('"', "").encode("latin-1")) or "")


def token_of(text):
    """Returns the token in a field, in lower case; None if there is no valid token."""
    if text is None or text is Unusable:
        return None
    text = text.strip(BLANKS)
    if len(text) >= 2 and text[:1] == b"<" and text[-1:] == b">":
        text = bytes(byte for byte in text[1:-1] if byte not in BLANKS)
    if not 2 <= len(text) <= 200 or len(text) % 2 or not HEX.match(text):
        return None
    return text.lower().decode()


def lines_of(data, start):
    """Returns (start, end with the line feed) of each physical line."""
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
        check_returns(data, begin, end, number)
        if data[begin:end].strip(b" \t\r\n"):
            yield Row(number, begin, end, {"token": without_end(data[begin:end])})


def read_json(data, start):
    def refuse(word):
        raise ValueError(word)

    def number(text):
        return text.encode()

    for line, (begin, end) in enumerate(lines_of(data, start), 1):
        check_returns(data, begin, end, line)
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
    """Returns the value of a key, or of a path of keys. A key with the whole name takes precedence."""
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


def unquoted(cell):
    """Returns the value of a field between tabs; None if it has no value."""
    if cell == b"\\N":
        return None
    inside = cell[1:-1]
    if len(cell) >= 2 and cell[:1] == cell[-1:] == b'"' and b'"' not in inside.replace(b'""', b""):
        return inside.replace(b'""', b'"')
    return cell


WITH_TABS = re.compile(b'(?:"(?:[^"]|"")*"(?=\t|\\Z)|[^\t]*)')


def cells(text, most):
    """Returns the fields of a line with tabs. If there are more fields than in the header, tabs in quotes count as
    text."""
    plain = text.split(b"\t")
    if most is None or len(plain) > most:
        plain, place = [], 0
        while place <= len(text):
            found = WITH_TABS.match(text, place)
            plain.append(found.group())
            place = found.end() + 1
    return plain


def read_tabs(data, start, is_blank):
    """The same as `read_delimited`, for lines with tabs. A quoted field never extends beyond its line."""
    most = None
    for line, (begin, end) in enumerate(lines_of(data, start), 1):
        check_returns(data, begin, end, line)
        if is_blank(data[begin:end]):
            continue
        found = cells(without_end(data[begin:end]), most)
        fields = [unquoted(cell) for cell in found]
        fault = "more fields than the header" if most and len(found) > most else None
        most = most or len(found)
        yield line, begin, end, fields, fault


def read_delimited(data, start, separator, is_blank, shape=lambda: None):
    """Returns rows of fields: (line, start, end, fields, fault). RFC 4180 applies. A character between a closing quote
    and the separator makes the row invalid. Such a row ends at the next line break."""
    position, line = start, 1
    size = len(data)
    while position < size:
        end = data.find(b"\n", position)
        end = size if end < 0 else end + 1
        if is_blank(data[position:end]):
            check_returns(data, position, end, line)
            position, line = end, line + 1
            continue
        begin, begin_line = position, line
        fields, fault = [], None
        while True:
            if data[position:position + 1] == b'"':
                value, position = bytearray(), position + 1
                opening, opening_line = position, line + data.count(b"\n", begin, position)
                while True:
                    quote = data.find(b'"', position)
                    if quote < 0:
                        raise Faulty("an open quote", opening_line)
                    value += data[position:quote]
                    if data[quote + 1:quote + 2] == b'"':
                        value += b'"'
                        position = quote + 2
                        continue
                    position = quote + 1
                    break
                inner = data[opening:position - 1].split(b"\n")
                follower = data[position:position + 1]
                stop = data.find(b"\n", position)
                stop = size if stop < 0 else stop
                is_spoiled = follower not in (separator, b"\n", b"", b"\r")
                if is_spoiled:
                    # The last line is checked as a whole, because its quotes were not closed correctly.
                    tail = inner.pop()
                is_row = shape().is_row if shape() else lambda text: False
                if (inner if is_spoiled else inner[1:]) and (
                        any(map(is_row, inner))
                        or shape() and shape().is_rest_of_row(inner[0], len(fields))):
                    raise Faulty("a row in quotes", opening_line)
                if is_spoiled:
                    check_returns(data, position, stop, line + data.count(b"\n", begin, position))
                    if inner and is_row(tail + data[position - 1:stop]):
                        raise Faulty("a row in quotes", opening_line)
                    fault = "text behind a closing quote"
                    position = min(size, stop + 1)
                    break
                if follower == b"\r":
                    check_returns(data, position, position + 1,
                                  line + data.count(b"\n", begin, position))
                    position += 1
                fields.append(bytes(value))
            else:
                here = data.find(separator, position)
                stop = data.find(b"\n", position)
                stop = size if stop < 0 else stop
                if here < 0 or here > stop:
                    here = stop
                value = data[position:here]
                check_returns(data, position, here, line + data.count(b"\n", begin, position))
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


def place(names, wanted):
    if wanted in names:
        return names.index(wanted)
    alike = [index for index, name in enumerate(names) if name.lower() == wanted.lower()]
    if len(alike) != 1:
        raise Refused(f"no column {wanted}")
    return alike[0]
