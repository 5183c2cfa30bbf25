"""What a task's attachments are, by their names, and which of them is its primary one (docs/dataset.md)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Literal

Kind = Literal["audio", "video", "document", "image", "none"]
ORDER: tuple[Kind, ...] = ("audio", "video", "document", "image")
"""A task with attachments of several kinds counts under the first of these that it has."""

_SUFFIXES: dict[Kind, str] = {
    "audio": "aac aif aifc aiff amr au caf flac m4a m4b mid midi mka mp2 mp3 oga ogg opus wav weba wma",
    "video": "3g2 3gp asf avi flv m2ts m4v mkv mov mp4 mpeg mpg mts ogv qt webm wmv",
    "image": "apng avif bmp gif heic heif ico jfif jpe jpeg jpg png psd svg svgz tif tiff webp",
}
_KINDS = {f".{suffix}": kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
"""A table of our own: the machine's (`mimetypes`) differs from machine to machine, and so would the numbers."""


def kind_of(name: str) -> Kind:
    """The kind of one attachment by its name; what is neither audio, video nor image is a document."""
    return _KINDS.get(PurePosixPath(name).suffix.lower(), "document")


def primary_kind(names: Iterable[str]) -> Kind:
    """The primary attachment's kind: the first of ORDER among a task's attachments, `none` without any."""
    kinds = {kind_of(name) for name in names}
    return next((kind for kind in ORDER if kind in kinds), "none")
