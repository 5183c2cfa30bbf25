"""What a task's attachments are, by name and content type, and which of them is its primary one."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Literal

Kind = Literal["audio", "video", "document", "image", "none"]
ORDER: tuple[Kind, ...] = ("audio", "video", "document", "image")
"""A task with attachments of several kinds counts under the first of these that it has."""

_DOCUMENTS = {
    ".pdf",
    ".doc",
    ".docx",
    ".xls",
    ".xlsx",
    ".ppt",
    ".pptx",
    ".odt",
    ".ods",
    ".csv",
    ".txt",
    ".md",
    ".rtf",
}
_EXTRA = {".m4a": "audio", ".opus": "audio", ".weba": "audio", ".mkv": "video", ".heic": "image", ".avif": "image"}


def kind_of(name: str) -> Kind:
    """The kind of one attachment by its name; what is neither audio, video nor image is a document."""
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in _DOCUMENTS:
        return "document"
    family = _EXTRA.get(suffix) or (mimetypes.guess_type(name)[0] or "").partition("/")[0]
    match family:
        case "audio" | "video" | "image":
            return family
        case _:
            return "document"


def primary_kind(names: Iterable[str]) -> Kind:
    """The primary attachment's kind: the first of ORDER among a task's attachments, `none` without any."""
    kinds = {kind_of(name) for name in names}
    return next((kind for kind in ORDER if kind in kinds), "none")
