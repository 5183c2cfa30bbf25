"""Names for places in the page, made from identifiers that may hold anything."""

from __future__ import annotations

import hashlib
import re


def anchor(*parts: str | int) -> str:
    """A fragment identifier of `[A-Za-z0-9_-]` only; parts that had to be changed get a hash, so none collide."""
    raw = "\x00".join(str(part) for part in parts)
    clean = [re.sub(r"[^A-Za-z0-9_]+", "-", str(part)).strip("-")[:48] for part in parts]
    name = "-".join(clean)
    if all(kept == str(part) for kept, part in zip(clean, parts, strict=True)):
        return name
    return f"{name}-{hashlib.sha256(raw.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
