"""The task's own files as an agent can hand them to its model: annotation and attachments by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bench.task import Task
from harness.agents.agent import MediaKind
from sandboxes.sandbox import HOME, WORKSPACE

MAX_INLINE_BYTES = 3_750_000
"""Largest file handed over natively: 5 MB as base64, the strictest provider's limit for one image."""
MAX_INLINE_FILES = 20
"""More images than this make one provider refuse pictures over 2000 pixels."""
MAX_INLINE_TOTAL_BYTES = 15_000_000
"""Of all together: 20 MB as base64, with room for a conversation below the strictest limit of a request, 32 MB."""
ATTACHED = "attached"
"""Folder in the home for copies under names that need no quoting."""

_TYPES: dict[str, tuple[MediaKind, str]] = {
    ".png": ("image", "image/png"), ".jpg": ("image", "image/jpeg"), ".jpeg": ("image", "image/jpeg"),
    ".gif": ("image", "image/gif"), ".webp": ("image", "image/webp"),
    ".mp3": ("audio", "audio/mpeg"), ".wav": ("audio", "audio/wav"), ".m4a": ("audio", "audio/mp4"),
    ".ogg": ("audio", "audio/ogg"), ".flac": ("audio", "audio/flac"), ".aac": ("audio", "audio/aac"),
    ".mp4": ("video", "video/mp4"), ".webm": ("video", "video/webm"), ".mov": ("video", "video/quicktime"),
    ".mkv": ("video", "video/x-matroska"), ".pdf": ("document", "application/pdf"),
}  # fmt: skip
"""By suffix, not by this machine's own table of types, which differs from machine to machine."""


@dataclass(frozen=True)
class Media:
    """One file of the task: on this machine, in the workspace, and its copy under a plain name in the home."""

    kind: MediaKind
    source: Path
    workspace_path: str
    home_name: str
    mime: str

    @property
    def home_path(self) -> str:
        return f"{HOME}/{self.home_name}"


def kind_of(name: str) -> MediaKind | None:
    """What a file is taken for by its name; None for what no model takes."""
    found = _TYPES.get(PurePosixPath(name).suffix.lower())
    return found[0] if found else None


def native_media(task: Task, kinds: Iterable[MediaKind]) -> list[Media]:
    """Annotation first, then attachments, of those kinds, small enough and few enough to be handed over whole.

    Where a task comes with digests, no attachment is: what one agent can take and another cannot makes no difference
    then. The annotation is part of the request and stays.
    """
    wanted = set(kinds)
    found: list[Media] = []
    room = MAX_INLINE_TOTAL_BYTES
    attachments = task.attachments if task.digests is None else ()
    for name in (*task.annotations, *attachments):
        suffix, kind = PurePosixPath(name).suffix.lower(), kind_of(name)
        source = task.project / name
        if kind not in wanted or kind is None or source.is_symlink():
            continue
        size = source.stat().st_size
        if size > min(MAX_INLINE_BYTES, room):
            continue
        room -= size
        found.append(
            Media(kind, source, f"{WORKSPACE}/{name}", f"{ATTACHED}/{len(found) + 1:02}{suffix}", _TYPES[suffix][1])
        )
    return found[:MAX_INLINE_FILES]


def attached_by_path(media: Iterable[Media]) -> str:
    """The line in which agents of one family find files to take in."""
    return "Attached: " + " ".join(f"@{one.home_path}" for one in media)


def counts(media: Iterable[Media]) -> dict[str, int]:
    return dict(Counter(one.kind for one in media))
