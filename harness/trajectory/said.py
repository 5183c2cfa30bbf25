"""What was said in a model call, in the same words for every wire protocol."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any, NamedTuple


class Text(NamedTuple):
    text: str


class Media(NamedTuple):
    """A picture, a sound or a document as it went over the wire; `data` empty: only its address did."""

    mime: str
    data: bytes
    address: str = ""


Part = Text | Media


class Message(NamedTuple):
    """`role` is `system` or `user`."""

    role: str
    parts: tuple[Part, ...]


class Result(NamedTuple):
    """What a tool gave back. `call_id` empty: the protocol names no call; then `name` is the tool's."""

    call_id: str
    parts: tuple[Part, ...]
    name: str = ""


class Call(NamedTuple):
    """A tool call of the model. `id` empty where the protocol has none."""

    id: str
    name: str
    arguments: dict[str, Any]


class Reply(NamedTuple):
    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list that came from outside; nothing for anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def obj(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def arguments(value: Any) -> dict[str, Any]:
    """A call's arguments as an object; what is none is kept under `raw`."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError:
            return {"raw": value}
    return value if isinstance(value, dict) else {"raw": value}


def data_media(mime: Any, encoded: Any) -> Media:
    try:
        return Media(string(mime), base64.b64decode(string(encoded), validate=False))
    except (binascii.Error, ValueError):
        return Media(string(mime), b"")


def url_media(url: Any) -> Media:
    """A picture given by a `data:` address, or by any other, which is kept as it is."""
    address = string(url)
    head, comma, encoded = address.partition(",")
    if address.startswith("data:") and comma:
        return data_media(head.removeprefix("data:").partition(";")[0], encoded)
    return Media("", b"", address)


def sse_events(raw: bytes) -> Iterator[dict[str, Any]]:
    """Every `data:` that is a JSON object, in order; the half event of a cut stream is left out."""
    for block in raw.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = [line[5:].lstrip() for line in block.split(b"\n") if line.startswith(b"data:")]
        if not lines:
            continue
        try:
            event = json.loads(b"\n".join(lines))
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event
