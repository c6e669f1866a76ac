"""The pictures of the README: made by a command, small, and made anew from the product as it is."""

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from launch.datadir import ROOT
from launch.palette import shrink

NAMES = {"queue", "proposal", "phone", "phone-queue", "run", "repair"}
LARGEST = 200_000


def picture(path: Path, rows: list[bytes], width: int, *, filters: bytes, colour: int = 2) -> None:
    """A PNG of rows that are filtered already."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    lines = b"".join(bytes([kind]) + row for kind, row in zip(filters, rows, strict=True))
    header = struct.pack(">IIBBBBB", width, len(rows), 8, colour, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )


def pixels(path: Path) -> list[list[bytes]]:
    """The colours of a picture with a palette."""
    data = path.read_bytes()
    at, parts = 8, {}
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        parts[data[at + 4 : at + 8]] = data[at + 8 : at + 8 + size]
        at += size + 12
    width, height = struct.unpack_from(">II", parts[b"IHDR"])
    raw, palette = zlib.decompress(parts[b"IDAT"]), parts[b"PLTE"]
    lines = [raw[row * (width + 1) + 1 : (row + 1) * (width + 1)] for row in range(height)]
    return [[palette[3 * number : 3 * number + 3] for number in line] for line in lines]


def test_a_palette_keeps_the_picture(tmp_path: Path) -> None:
    """One row for each of the five ways in which a row may be stored."""
    path = tmp_path / "five.png"
    first, second = b"\x0a\x14\x1e", b"\x28\x32\x3c"
    none = first + second
    sub = first + bytes(b - a for a, b in zip(first, second, strict=True))
    up = bytes(6)
    average = bytes((value - value // 2) & 255 for value in first) + bytes(
        (b - (a + b) // 2) & 255 for a, b in zip(first, second, strict=True)
    )
    paeth = bytes(6)
    picture(path, [none, sub, up, average, paeth], 2, filters=bytes([0, 1, 2, 3, 4]))
    shrink(path)
    assert pixels(path) == [[first, second]] * 4 + [[first, second]]


def test_what_is_no_picture_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "no.png"
    path.write_bytes(b"GIF89a")
    with pytest.raises(ValueError, match="no PNG"):
        shrink(path)


def test_the_pictures_of_the_readme_are_there_and_small() -> None:
    made = {path.name: path.stat().st_size for path in (ROOT / "docs" / "pictures").glob("*.png")}
    assert set(made) == {f"{name}-{scheme}.png" for name in NAMES for scheme in ("light", "dark")}
    assert all(5_000 < size < LARGEST for size in made.values()), made
    readme = (ROOT / "README.md").read_text()
    assert all(name in made for name in _named(readme))
    assert len(_named(readme)) >= 2


def _named(readme: str) -> list[str]:
    return [part.split(")")[0].split('"')[0] for part in readme.split("docs/pictures/")[1:]]


@pytest.mark.e2e
@pytest.mark.browser
def test_they_are_made_from_a_product_that_runs(
    browser_type_launch_args: dict[str, object], tmp_path: Path
) -> None:
    """From an empty folder to every picture; nothing else has to be there but a browser."""
    assert browser_type_launch_args
    done = subprocess.run(
        [sys.executable, "-m", "launch.pictures", "--out", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = {path.name: path.stat().st_size for path in tmp_path.glob("*.png")}
    assert set(made) == {f"{name}-{scheme}.png" for name in NAMES for scheme in ("light", "dark")}
    assert all(5_000 < size < LARGEST for size in made.values()), made
