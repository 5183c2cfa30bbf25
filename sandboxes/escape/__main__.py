"""`python -m sandboxes.escape`: the list of attempts as Markdown, as docs/security.md has it."""

from __future__ import annotations

from itertools import groupby

from sandboxes.escape.suite import listed


def markdown() -> str:
    """One table for each group, in the order of the report."""
    parts = []
    for group, entries in groupby(listed(), key=lambda entry: entry.group):
        rows = [f"| `{entry.name}` | {entry.what} |" for entry in entries]
        parts.append("\n".join([f"**{group}**", "", "| attempt | gets at |", "| --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
