"""The task's own files as an agent can hand them to its model: annotation and attachments by kind."""

from __future__ import annotations

import mimetypes
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
ATTACHED = "attached"
"""Folder in the home for copies under names that need no quoting."""

_TYPES: dict[str, MediaKind] = {
    ".png": "image", ".jpg": "image", ".jpeg": "image", ".gif": "image", ".webp": "image",
    ".mp3": "audio", ".wav": "audio", ".m4a": "audio", ".ogg": "audio", ".flac": "audio", ".aac": "audio",
    ".mp4": "video", ".webm": "video", ".mov": "video", ".mkv": "video",
    ".pdf": "document",
}  # fmt: skip


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
    return _TYPES.get(PurePosixPath(name).suffix.lower())


def native_media(task: Task, kinds: Iterable[MediaKind]) -> list[Media]:
    """Annotation first, then attachments, of those kinds, small enough and few enough to be handed over whole."""
    wanted = set(kinds)
    found: list[Media] = []
    for name in (*task.annotations, *task.attachments):
        suffix, kind = PurePosixPath(name).suffix.lower(), kind_of(name)
        source = task.project / name
        if kind not in wanted or kind is None or source.is_symlink() or source.stat().st_size > MAX_INLINE_BYTES:
            continue
        mime = mimetypes.guess_type(f"x{suffix}")[0] or "application/octet-stream"
        found.append(Media(kind, source, f"{WORKSPACE}/{name}", f"{ATTACHED}/{len(found) + 1:02}{suffix}", mime))
    return found[:MAX_INLINE_FILES]


def attached_by_path(media: Iterable[Media]) -> str:
    """The line in which agents of one family find files to take in."""
    return "Attached: " + " ".join(f"@{one.home_path}" for one in media)


def counts(media: Iterable[Media]) -> dict[str, int]:
    return dict(Counter(one.kind for one in media))
