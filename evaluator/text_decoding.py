"""Bytes to text: encodings with and without a mark, escapes, base64 and hex blocks, printable runs of binaries."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
from collections.abc import Iterator
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

SAMPLE_BYTES = 64 * 1024
RUN_CHARS = 12
"""Printable runs of a binary that are shorter say nothing."""
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
LEGACY = ("cp1252", "gb18030", "big5", "shift_jis", "euc_jp", "euc_kr", "cp1251", "utf-16-le", "utf-16-be")
"""Tried on text that is not UTF-8, each a reading of its own: nothing is guessed, and a wrong one matches nothing."""
PUNCTUATION = frozenset(",.;:!?()[]'\"-/–—…、。,!?;:()「」『』《》【】“”‘’・")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_ASCII_RUN = re.compile(rb"[\x20-\x7e]{12,}")
_PRINTABLE = np.array([byte in b"\t\r\n" or 0x20 <= byte < 0x7F for byte in range(256)])
_USUAL_BASE64 = str.maketrans("-_", "+/")
_OLE = b"\xd0\xcf\x11\xe0"
_ESCAPE = re.compile(r"\\u\{([0-9a-fA-F]{1,6})\}|\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|\\([nrtbf])|\\([\"'/\\`])")
_TAG = re.compile(r"<[^<>]{0,2000}>")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[ :]?){20,}")
_BREAK = re.compile(r"(?:\\r|\\n|\s){1,40}")


def as_text(content: bytes) -> list[str] | None:
    """Every reading of the bytes as text, the likeliest first; None when they are no text."""
    for mark, encoding in MARKS:
        if content.startswith(mark):
            return [content[len(mark) :].decode(encoding, "replace")]
    sample = content[:SAMPLE_BYTES]
    if wide := _wide_encoding(sample):
        return [content.decode(wide, "replace")]
    if len(_CONTROL.findall(sample)) > 0.02 * len(sample):
        return None
    try:
        return [content.decode("utf-8")]
    except UnicodeDecodeError:
        return [content.decode("utf-8", "replace"), *(content.decode(name, "replace") for name in LEGACY)]


def _wide_encoding(sample: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, told by where its zero bytes stand."""
    zeros = [sample[at::4].count(0) / max(1, len(sample[at::4])) for at in range(4)]
    if min(zeros[1:]) > 0.6 > zeros[0]:
        return "utf-32-le"
    if min(zeros[:3]) > 0.6 > zeros[3]:
        return "utf-32-be"
    even, odd = (zeros[0] + zeros[2]) / 2, (zeros[1] + zeros[3]) / 2
    if odd > 0.2 and even < 0.05:
        return "utf-16-le"
    if even > 0.2 and odd < 0.05:
        return "utf-16-be"
    if len(_CONTROL.findall(sample)) > 0.005 * len(sample):
        return next((name for name in ("utf-16-le", "utf-16-be") if _is_prose(sample, name)), None)
    return None


def _is_prose(sample: bytes, encoding: str) -> bool:
    """Whether the bytes are letters in an encoding without zero bytes to tell it by (Chinese in UTF-16)."""
    try:
        text = sample[: len(sample) // 2 * 2].decode(encoding)
    except UnicodeDecodeError as error:
        if error.end < len(sample) - 2:
            return False
        text = sample[: error.start].decode(encoding)
    known = sum(c.isalnum() or c.isspace() or c in PUNCTUATION for c in text)
    return len(text) >= RUN_CHARS and known > 0.95 * len(text)


def printable_runs(content: bytes) -> Iterator[str]:
    """Printable runs of a binary, joined: UTF-8, UTF-16 of plain letters; all of an old office file as UTF-16."""
    data = np.frombuffer(content, dtype=np.uint8)
    plain = _PRINTABLE[data]
    if runs := [
        content[start:end].decode("utf-8", "replace") for start, end in _runs(plain | _utf8(data), RUN_CHARS)
    ]:
        yield "\n".join(runs)
    zero = data == 0
    for encoding, first, second in (("utf-16-le", plain, zero), ("utf-16-be", zero, plain)):
        pairs = first[:-1] & second[1:]
        places = [(at + 2 * a, at + 2 * b) for at in (0, 1) for a, b in _runs(pairs[at::2], RUN_CHARS)]
        if runs := [content[start:end].decode(encoding, "replace") for start, end in places]:
            yield "\n".join(runs)
    if content.startswith(_OLE):
        yield content.decode("utf-16-le", "replace")


def _utf8(data: Bytes) -> Flags:
    """Which bytes belong to a well-formed character of two to four bytes."""
    follows = (data & 0xC0) == 0x80
    found = np.zeros(len(data), dtype=bool)
    for low, high, count in ((0xC2, 0xDF, 1), (0xE1, 0xEF, 2), (0xF0, 0xF4, 3)):
        starts = (data >= low) & (data <= high)
        for step in range(1, count + 1):
            starts[:-step] &= follows[step:]
            starts[len(starts) - step :] = False
        for step in range(count + 1):
            found[step:] |= starts[: len(starts) - step]
    return found


def _runs(flags: Flags, least: int) -> list[tuple[int, int]]:
    """Start and end of every row of at least `least` set flags."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    long = ends - starts >= least
    return list(zip(starts[long].tolist(), ends[long].tolist(), strict=True))


def readings(text: str) -> Iterator[str]:
    """The text; without its escapes (HTML, JSON and JavaScript, percent) and tags where it has such."""
    yield text
    plain = text
    for _ in range(3):  # JSON in JSON in a script, &amp;quot;
        before = plain
        if "&" in plain:
            plain = html.unescape(plain)
        if "\\" in plain:
            plain = _ESCAPE.sub(_unescape, plain)
        if "%" in plain:
            plain = unquote(plain)
        if plain == before:
            break
    if "=" in plain and "=\n" in plain.replace("\r\n", "\n"):
        plain = plain.replace("\r\n", "\n").replace("=\n", "")  # soft breaks of quoted-printable
    if "<" in plain:
        plain = _TAG.sub(" ", plain)
    if plain != text:
        yield plain


def without_tags(text: str) -> str:
    """The text with its tags gone and nothing in their place: words that tags cut in two are whole again."""
    return _TAG.sub("", text)


def encoded_blocks(text: str) -> Iterator[tuple[str, bytes]]:
    """(`base64` or `hex`, content) of each block that decodes to something with printable text or a known format."""
    for block in _base64_blocks(text):
        usual = block.translate(_USUAL_BASE64)
        usual = usual[: len(usual) - (len(usual) % 4 == 1)]
        content = base64.b64decode(usual + "=" * (-len(usual) % 4))
        if _is_worth_reading(content):
            yield "base64", content
    for match in _HEX.finditer(text):
        digits = re.sub(r"[ :]", "", match.group())
        try:
            content = binascii.unhexlify(digits)
        except binascii.Error:
            continue
        if _is_worth_reading(content):
            yield "hex", content


def _base64_blocks(text: str) -> Iterator[str]:
    """Runs of base64 letters; those that only a line break (a real one, or `\\n` in a string) parts are one."""
    block, end = "", -1
    for match in _BASE64.finditer(text):
        if block and not _BREAK.fullmatch(text, end, match.start()):
            yield block
            block = ""
        block, end = block + match.group(), match.end()
    if block:
        tail = re.compile(r"(?:\r?\n|\\n)[ \t]*([A-Za-z0-9+/_-]{2,19}={0,2})(?![A-Za-z0-9])").match(text, end)
        yield block + (tail.group(1).rstrip("=") if tail else "")


def _is_worth_reading(content: bytes) -> bool:
    packed = (b"PK\x03\x04", b"\x1f\x8b", b"x\x9c", b"x\xda", b"BZh", b"\xfd7z", b"%PDF", b"\x89PNG", b"\xff\xd8\xff")
    wide = content.count(0) > len(content) // 4
    return content.startswith(packed) or wide or bool(_ASCII_RUN.search(content)) or _has_utf8(content)


def _has_utf8(content: bytes) -> bool:
    return bool(_runs(_utf8(np.frombuffer(content, dtype=np.uint8)), RUN_CHARS))


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1) or match.group(2) or match.group(3)
    if code:
        number = int(code, 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else " "
    return match.group(5) or " "
