#!/usr/bin/python3
"""What an HTML page says to a parser that is not ours, as JSON.

    Tests/Reference/page_outline.py PAGE

`problems`: elements that are not closed, or not in order, attributes that are given twice and
references to what the page does not have. `rows`: the texts of the cells of each row of the page's last table.
`links`: where its links lead. `tags`: the names of its elements.
"""
import collections
import html.parser
import json
import sys

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.problems, self.rows, self.links = [], [], [], []
        self.tags, self.identifiers, self.references = set(), collections.Counter(), set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        names = [name for name, _ in attributes]
        if len(names) != len(set(names)):
            self.problems.append(f"{tag}: an attribute is given twice")
        for name, value in attributes:
            if name == "id":
                self.identifiers[value] += 1
            if name == "aria-labelledby":
                self.references.update(value.split())
            if name == "href" and value.startswith("#"):
                self.references.add(value[1:])
            elif name == "href" and tag == "a":
                self.links.append(value)
        if tag == "table":
            self.rows = []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> at {self.getpos()} closes another element")

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    def unexpected(self, data):
        self.problems.append(f"not an element: {data[:60]}")

    handle_comment = handle_pi = unknown_decl = unexpected


outline = Outline()
with open(sys.argv[1], encoding="utf-8") as page:
    outline.feed(page.read())
outline.close()
problems = outline.problems + [f"{tag} is not closed" for tag in outline.open]
problems += [f"{name} is there {count} times" for name, count in outline.identifiers.items() if count > 1]
problems += [f"#{name} leads nowhere" for name in outline.references - set(outline.identifiers)]
json.dump({"problems": problems, "rows": outline.rows, "links": outline.links,
           "tags": sorted(outline.tags)}, sys.stdout)
