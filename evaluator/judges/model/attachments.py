"""A request's attachments as a judge gets them: what their digests say, their pictures, and the files themselves
where the model takes their kind."""

from __future__ import annotations

import base64
import mimetypes
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bench.errors import InfraError
from bench.strict_json import read_json
from evaluator.cases import AttachmentFacts

MediaKind = Literal["pdf", "audio", "video"]
MOST_NATIVE_BYTES = 8 * 1024 * 1024
"""Of one file; a larger one is known by its digest only."""
MOST_DIGEST_PICTURES = 6
"""Of one attachment: key frames of a recording, pages of a document."""
_SUFFIXES: dict[str, MediaKind] = {
    ".pdf": "pdf", ".mp3": "audio", ".wav": "audio", ".m4a": "audio", ".ogg": "audio", ".flac": "audio",
    ".mp4": "video", ".webm": "video", ".mov": "video",
}  # fmt: skip


class DigestPicture(NamedTuple):
    """A picture of a digest and what it shows."""

    title: str
    path: Path


def native_kind(attachment: AttachmentFacts) -> MediaKind | None:
    """As what a model could take the file itself; pictures go another way, as JPEG of a fitting size."""
    return _SUFFIXES.get(Path(attachment.path).suffix.lower())


def native_part(path: Path) -> dict[str, Any]:
    """The file as a content part of the OpenAI chat API, which litellm turns into each provider's own."""
    suffix = path.suffix.lower()
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    if _SUFFIXES[suffix] == "audio":
        return {"type": "input_audio", "input_audio": {"data": data, "format": suffix[1:]}}
    kind = mimetypes.types_map.get(suffix, "application/octet-stream")
    return {"type": "file", "file": {"filename": path.name, "file_data": f"data:{kind};base64,{data}"}}


def digest_words(folder: Path) -> str:
    """What a digest says, as `cdb prepare` made it. Raises InfraError when it is gone."""
    try:
        return (folder / "digest.md").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InfraError(f"the digest in {folder} is gone; run `cdb prepare` again") from error


def digest_pictures(folder: Path, name: str) -> list[DigestPicture]:
    """Its first pictures, in order."""
    listed = read_json(folder / "digest.json").get("pictures", [])[:MOST_DIGEST_PICTURES]
    return [DigestPicture(f"{name}, {one['caption']}", folder / one["file"]) for one in listed]
