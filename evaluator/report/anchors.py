"""Names for places in a page and for pages, made from identifiers that may hold anything."""

from __future__ import annotations

import hashlib
import re


def anchor(*parts: str | int) -> str:
    """A name of `[a-zA-Z0-9_-]` only; parts that had to be changed get a hash, so none collide."""
    clean = [re.sub(r"[^A-Za-z0-9_]+", "-", str(part)).strip("-")[:48] for part in parts]
    name = "-".join(clean)
    if all(kept == str(part) for kept, part in zip(clean, parts, strict=True)):
        return name
    return f"{name}-{_mark(parts)}"


def page_name(*parts: str | int) -> str:
    """A file name without ending. Capitals get a hash too: some file systems do not tell them apart."""
    name = anchor(*parts)
    lowered = name.lower()
    return name if lowered == name else f"{lowered}-{_mark(parts)}"


def _mark(parts: tuple[str | int, ...]) -> str:
    raw = "\x00".join(str(part) for part in parts)
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:8]
