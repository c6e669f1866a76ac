"""Makes a browser's PNG smaller: text on flat colours needs no more than 256 of them. Only the standard library."""

import struct
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_COLOURS: Final = 256
Colour = tuple[int, int, int]


def shrink(path: Path) -> None:
    """Rewrites an RGB or RGBA picture of 8 bits with a palette; rare colours become their nearest neighbour."""
    width, height, channels, raw = _read(path.read_bytes())
    rows = _unfiltered(raw, width * channels, channels, height)
    pixels = [_colours(row, channels) for row in rows]
    known = _nearest(Counter(colour for row in pixels for colour in row))
    palette = sorted(set(known.values()))
    number = {colour: palette.index(near) for colour, near in known.items()}
    lines = b"".join(b"\0" + bytes(map(number.__getitem__, row)) for row in pixels)
    path.write_bytes(_written(width, height, palette, lines))


def _read(data: bytes) -> tuple[int, int, int, bytes]:
    """Width, height, channels, and the filtered rows."""
    if not data.startswith(_SIGNATURE):
        raise ValueError("This is no PNG.")
    at, packed, header = len(_SIGNATURE), b"", b""
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        header = body if kind == b"IHDR" else header
        packed += body if kind == b"IDAT" else b""
        at += size + 12
    width, height, depth, colour = struct.unpack_from(">IIBB", header)
    if depth != 8 or colour not in (2, 6):
        raise ValueError("Only RGB and RGBA of 8 bits are read.")
    return width, height, 3 if colour == 2 else 4, zlib.decompress(packed)


def _unfiltered(raw: bytes, size: int, step: int, height: int) -> Iterable[bytes]:
    """The rows as they are meant: each byte was stored as a difference to its neighbours."""
    above = bytearray(size)
    for number in range(height):
        start = number * (size + 1)
        kind, row = raw[start], bytearray(raw[start + 1 : start + 1 + size])
        _unfilter(kind, row, above, step)
        yield bytes(row)
        above = row


def _unfilter(kind: int, row: bytearray, above: bytearray, step: int) -> None:
    for at in range(len(row) if kind else 0):
        left = row[at - step] if at >= step else 0
        corner = above[at - step] if at >= step else 0
        guess = (left, above[at], (left + above[at]) // 2, _paeth(left, above[at], corner))[kind - 1]
        row[at] = (row[at] + guess) & 255


def _paeth(left: int, up: int, corner: int) -> int:
    near = left + up - corner
    return min((abs(near - left), 0, left), (abs(near - up), 1, up), (abs(near - corner), 2, corner))[2]


def _colours(row: bytes, channels: int) -> list[Colour]:
    return list(zip(row[0::channels], row[1::channels], row[2::channels], strict=True))


def _nearest(counted: "Counter[Colour]") -> dict[Colour, Colour]:
    """Each colour, and the frequent one that stands for it."""
    kept = [colour for colour, _ in counted.most_common(_COLOURS)]
    known = {colour: colour for colour in kept}
    for colour in counted.keys() - known.keys():
        known[colour] = min(
            kept, key=lambda other: sum((a - b) ** 2 for a, b in zip(colour, other, strict=True))
        )
    return known


def _written(width: int, height: int, palette: list[Colour], lines: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    colours = b"".join(bytes(colour) for colour in palette)
    chunks = ((b"IHDR", header), (b"PLTE", colours), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, body) for kind, body in chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
