"""Making any text safe to look at: what a terminal or a layout engine would obey is shown instead.

HTML escaping is the templates' business (autoescape); this is about characters that stay dangerous or
misleading after it: escape sequences, text direction overrides, invisible characters, broken surrogates.
"""

from __future__ import annotations

import re

MAX_CHARS = 20_000
"""Longer texts are cut and say so: one runaway console line must not make the page unreadable."""

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """`text` with control, direction and invisible characters drawn as visible signs; newline and tab stay.

    U+001B becomes ␛, U+202E becomes ⟨U+202E⟩, a lone surrogate ⟨U+D800⟩; carriage return before a newline goes.
    """
    if len(text) > MAX_CHARS:
        text = f"{text[:MAX_CHARS]} … ({len(text) - MAX_CHARS} more characters not shown)"
    return _HARMFUL.sub(_sign, text.replace("\r\n", "\n"))


def _sign(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"⟨U+{code:04X}⟩"
