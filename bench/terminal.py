"""Text from outside on a terminal: shown, never obeyed."""

from __future__ import annotations


def safe(text: str) -> str:
    """The text with every control character but newline and tab as a visible escape."""
    return "".join(
        c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text
    )
