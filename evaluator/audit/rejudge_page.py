"""The page of a re-judge diff: what two judgings say of the same criteria, with the frames they stand on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.atomic import write_bytes
from evaluator.audit.html import Album, render


def write_diff_page(found: dict[str, Any], out: Path) -> Path:
    """Write `found`, as `rejudge_diff` gives it, as a self-contained page; its folders must still be there."""
    album = Album()
    folders = [Path(judging["folder"]) for judging in found["judgings"]]
    frames = [
        [album.uris.get(album.take(*at), "") for at in zip(folders, (s["frame"] for s in flip["sides"]), strict=True)]
        for flip in found["flips"]
    ]
    flips = list(zip(found["flips"], frames, strict=True))
    page = render("diff.html.j2", "audit.css", "diff.js", found=found, flips=flips)
    write_bytes(out, page.encode("utf-8"))
    return out
