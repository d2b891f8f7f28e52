"""Walks HPACK header blocks (RFC 7541) and tells how each field was represented."""
import functools

STATIC = """:authority,
:method,GET
:method,POST
:path,/
:path,/index.html
:scheme,http
:scheme,https
:status,200
:status,204
:status,206
:status,304
:status,400
:status,404
:status,500
accept-charset,
accept-encoding,gzip; deflate
accept-language,
accept-ranges,
accept,
access-control-allow-origin,
age,
allow,
authorization,
cache-control,
content-disposition,
content-encoding,
content-language,
content-length,
content-location,
content-range,
content-type,
cookie,
date,
etag,
expect,
expires,
from,
host,
if-match,
if-modified-since,
if-none-match,
if-range,
if-unmodified-since,
last-modified,
link,
location,
max-forwards,
proxy-authenticate,
proxy-authorization,
range,
referer,
refresh,
retry-after,
server,
set-cookie,
strict-transport-security,
transfer-encoding,
user-agent,
vary,
via,
www-authenticate,"""
STATIC = [tuple(line.split(",")) for line in STATIC.split("\n")]
assert len(STATIC) == 61

# The lengths of the codes for the bytes 0 to 127 and for EOS (RFC 7541, appendix B). The code is
# canonical, so lengths are all there is to know; requests hold printable text only.
LENGTHS = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5,
    6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6,
    7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28]


def make_codes():
    """(length, code) -> byte, for codes of at most 15 bits: no other byte shares those."""
    codes, code, last = {}, 0, 0
    for length, byte in sorted((n, byte) for byte, n in enumerate(LENGTHS) if n <= 15):
        code <<= length - last
        codes[length, code] = byte
        code, last = code + 1, length
    return codes


CODES = make_codes()


# Most strings repeat from request to request.
@functools.lru_cache(4096)
def huffman(data):
    result, code, length = bytearray(), 0, 0
    for byte in data:
        for shift in range(7, -1, -1):
            code, length = code << 1 | byte >> shift & 1, length + 1
            if (length, code) in CODES:
                result.append(CODES[length, code])
                code, length = 0, 0
    # Padding is the beginning of EOS: less than 8 bits, all of them set (section 5.2).
    if length > 7 or code != (1 << length) - 1:
        raise ValueError("padding of a Huffman string")
    return bytes(result)


assert huffman(bytes.fromhex("f1e3c2e5f23a6ba0ab90f4ff")) == b"www.example.com"


class Walk:
    """The decoder of one connection: walks its blocks in order."""

    LIMIT = 4096

    def __init__(self):
        self.table = []
        self.table_size = 0
        self.blocks = 0
        self.evictions = 0

    @staticmethod
    def size(name, value):
        """What an entry takes of the table (RFC 7541, section 4.1)."""
        return 32 + len(name) + len(value)

    def block(self, data):
        """The fields of a block: form, index and name as represented, Huffman or not."""
        self.data, self.at = data, 0
        self.blocks += 1
        fields = []
        while self.at < len(data):
            first = data[self.at]
            if first & 0x80:
                index = self.integer(7)
                name, value = self.entry(index)
                fields.append(dict(form="indexed", index=index, name=name, value=value))
            elif first & 0xc0 == 0x40:
                field = self.literal("incremental", 6)
                self.table.insert(0, (field["name"], field["value"]))
                self.table_size += self.size(*self.table[0])
                while self.table_size > self.LIMIT:
                    self.table_size -= self.size(*self.table.pop())
                    self.evictions += 1
                    field["evicts"] = True
                fields.append(field)
            elif first & 0xe0 == 0x20:
                fields.append(dict(form="size", index=self.integer(5), name="", value=""))
            else:
                never = first & 0xf0 == 0x10
                fields.append(self.literal("never" if never else "without", 4))
        return fields

    def literal(self, form, prefix):
        index = self.integer(prefix)
        name, coded_name = (self.entry(index)[0], False) if index else self.string()
        value, coded_value = self.string()
        return dict(form=form, index=index, name=name, value=value,
                    huffman_name=coded_name, huffman_value=coded_value)

    def entry(self, index):
        if 1 <= index <= 61:
            return STATIC[index - 1]
        return self.table[index - 62]

    def integer(self, prefix):
        value = self.data[self.at] & (1 << prefix) - 1
        self.at += 1
        if value < (1 << prefix) - 1:
            return value
        shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value += (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def string(self):
        coded = bool(self.data[self.at] & 0x80)
        length = self.integer(7)
        raw = self.data[self.at:self.at + length]
        if len(raw) != length:
            raise ValueError("a string that ends beyond its block")
        self.at += length
        return (huffman(raw) if coded else raw).decode("ascii"), coded
