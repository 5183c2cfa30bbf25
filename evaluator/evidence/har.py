"""A HAR with its bodies capped: what a page asked for stays whole, what it got only where it is small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.atomic import write_json

MAX_BODY_BYTES = 200_000
MAX_BODIES_BYTES = 5_000_000


def cap_bodies(har: Path) -> int:
    """Delete the bodies beside `har` that are over `MAX_BODY_BYTES`, or come after `MAX_BODIES_BYTES` altogether, and
    say so in the HAR (`_cut_bytes`). Returns how many were cut."""
    content: dict[str, Any] = json.loads(har.read_text(encoding="utf-8", errors="replace"))
    kept, cut, spent = set[str](), 0, 0
    for entry in content["log"]["entries"]:
        for holder in (entry["response"].get("content", {}), entry["request"].get("postData", {})):
            name = holder.get("_file")
            if not name:
                continue
            body = har.parent / Path(name).name
            if name in kept:
                continue
            size = body.stat().st_size if body.is_file() else 0
            if size > MAX_BODY_BYTES or spent + size > MAX_BODIES_BYTES:
                del holder["_file"]
                holder["_cut_bytes"] = size
                cut += 1
            else:
                kept.add(name)
                spent += size
    for body in har.parent.iterdir():
        if body != har and body.name not in kept and body.suffix != ".har":
            body.unlink()
    write_json(har, content)
    return cut
