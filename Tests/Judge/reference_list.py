"""Reads token lists as the documentation describes them: the meaning of each byte of a list.

It uses none of Broadside's code. Well-formed lists are also read with Python's csv and json modules, which must agree
(`agree_with_python`).
"""
import csv
import io
import re

from reference_rows import (BLANKS, MARK, ROW_LIMIT, Faulty, Refused, Row, Shape, Unusable, blank_test,
                            json_field, place, read_delimited, read_json, read_lines, read_tabs,
                            token_of, with_line_feeds)

__all__ = ["Faulty", "Reading", "Refused", "Unusable"]


class Reading:
    """A list as the documentation describes it: its rows in order, each with its token or its fault."""

    def __init__(self, data, form, separator=b",", column="token"):
        self.data = data = with_line_feeds(data)
        self.form, self.separator, self.column = form, separator, column
        start = len(MARK) if data.startswith(MARK) else 0
        self.names = self.shape = None
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
        is_blank = blank_test(self.separator)
        if self.form == "tsv":
            found = read_tabs(self.data, start, is_blank)
        else:
            found = read_delimited(self.data, start, self.separator, is_blank, lambda: self.shape)
        header = next(found, None)
        if header is None:
            return
        if header[4]:
            raise Refused("the header is malformed")
        self.names = [(name or b"\\N").strip(BLANKS).decode() for name in header[3]]
        if len(set(self.names)) != len(self.names):
            raise Refused("two columns of one name")
        self.shape = Shape(self.separator, place(self.names, self.column), len(self.names))
        if self.form == "csv":
            # The quoted header may contain rows.
            list(read_delimited(self.data[:header[2]], start, self.separator, is_blank,
                                lambda: self.shape))
        for line, begin, end, fields, fault in found:
            if not fault and len(fields) > len(self.names):
                fault = "more fields than the header"
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
        """Returns why a row is invalid; None if it has a token. If the documentation leaves it open, the set has
        several reasons."""
        if row.fault == "not an object":
            return {"MalformedRow", "MalformedToken"}
        if row.fault:
            return {"MalformedRow"}
        value = self.field(row, self.column)
        if value is None:
            return {"MissingColumn"}
        return None if token_of(value) else {"MalformedToken"}

    def agree_with_python(self):
        """Reads a well-formed list with Python's own modules. A difference is an error of this file."""
        if self.form == "csv" and not any(row.fault for row in self.rows):
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
