"""Device tokens as Broadside reads them, and the part that each belongs to."""

from __future__ import annotations

import re
import zlib

PARTS_LIMIT = 1023
"""The most parts of a campaign: an apns-id has ten bits for the part."""

_BLANKS = " \t\r"
_DIGITS = re.compile(r"(?:[0-9A-Fa-f]{2}){1,100}\Z")


def normalized(text: str) -> str | None:
    """The token of a cell, in the form in which it is sent.

    Args:
        text: 2 to 200 hexadecimal digits, an even number, in any case, with blanks (space, tab,
            carriage return) around them, or in the form `<aabb ccdd>`.

    Returns:
        Lower-case digits; None if this is not a token, which Broadside records as `invalid`.
    """
    text = text.strip(_BLANKS)
    if len(text) >= 2 and text[0] == "<" and text[-1] == ">":
        text = text[1:-1].translate({ord(blank): None for blank in _BLANKS})
    return text.lower() if _DIGITS.match(text) else None


def is_blank(text: str) -> bool:
    """Whether a cell is blank: the freeze counts such rows and does not write them."""
    return not text.strip(_BLANKS + "\n")


def token_hash(token: str) -> int:
    """The CRC-32 (RFC 1952) of a token's UTF-8 bytes, from 0 to 2^32 - 1.

    Args:
        token: As `normalized` returns it, or the text of a cell that is not a token.
    """
    return zlib.crc32(token.encode("utf-8", "surrogatepass"))


def part_of(token_hash_value: int, parts: int) -> int:
    """The part of a token, from 1 to `parts`: all copies of a token are in one part."""
    return token_hash_value % parts + 1
