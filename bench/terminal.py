"""Text from outside on a terminal: shown, never obeyed."""

from __future__ import annotations


def safe(text: str) -> str:
    """The text with every control character but newline and tab as a visible escape."""
    return "".join(
        c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text
    )


def safe_json(text: str) -> str:
    """JSON text with what a terminal would obey (C1 controls, direction marks, lone surrogates) as JSON escapes."""
    return "".join(c if c.isprintable() or c in "\n\t" else _json_escape(c) for c in text)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
