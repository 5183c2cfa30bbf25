"""Project pages of a Python package index (the simple repository API): read in either form, written in both.

HTML: https://packaging.python.org/en/latest/specifications/simple-repository-api/ (PEP 503, 592, 658, 714);
JSON: PEP 691. A page is kept as the JSON form's `files`, with the index's own addresses.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

JSON = "application/vnd.pypi.simple.v1+json"
HTML = "application/vnd.pypi.simple.v1+html"
PLAIN_HTML = "text/html"
WANTED = f"{JSON}, {HTML}; q=0.2, {PLAIN_HTML}; q=0.01"
FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*\.(?:whl|egg|zip|tar|tar\.gz|tgz|tar\.bz2|tbz|tar\.xz|txz)\Z")
METADATA = ".metadata"
_KEPT = ("requires-python", "core-metadata", "dist-info-metadata", "yanked", "size", "upload-time")

File = dict[str, Any]
"""One file as PEP 691 has it: filename, url, hashes and, where the index says them, the keys of `_KEPT`."""


class NoPage(ValueError):
    """What came is no project page."""


def read_page(body: bytes, kind: str, address: str) -> list[File]:
    """The files that a page lists, in its order. `kind`: its media type; `address`: where it came from.

    Files whose names no installer would take, and addresses that are not http(s) or less secure than the page's
    own, are left out. Raises NoPage.
    """
    found = _read_json(body, address) if kind in (JSON, "application/json") else _read_html(body, kind, address)
    secure = urlsplit(address).scheme == "https"
    schemes = {"https"} if secure else {"http", "https"}
    return [one for one in found if FILE.match(one["filename"]) and urlsplit(one["url"]).scheme in schemes]


def _read_json(body: bytes, address: str) -> list[File]:
    try:
        page = json.loads(body)
        return [
            {
                "filename": str(one["filename"]),
                "url": urljoin(address, str(one["url"])),
                "hashes": {str(name): str(value) for name, value in one.get("hashes", {}).items()},
                **{key: one[key] for key in _KEPT if key in one},
            }
            for one in page["files"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoPage(f"{type(error).__name__}: {error}") from error


def _read_html(body: bytes, kind: str, address: str) -> list[File]:
    if kind not in (HTML, PLAIN_HTML):
        raise NoPage(f"its type is {kind}")
    reader = _Anchors(address)
    reader.feed(body.decode("utf-8", "replace"))
    if not reader.is_page:
        raise NoPage("it holds no link and is no list of links")
    return reader.files


class _Anchors(HTMLParser):
    def __init__(self, address: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = address
        self.files: list[File] = []
        self.is_page = False
        """Whether it looks like an index at all: links, or the heading of a page without files."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag == "base" and told.get("href"):
            self._base = urljoin(self._base, str(told["href"]))
        if tag == "meta" and told.get("name") == "pypi:repository-version":
            self.is_page = True
        if tag != "a" or not told.get("href"):
            return
        url, fragment = urldefrag(urljoin(self._base, str(told["href"])))
        name = unquote(urlsplit(url).path.rpartition("/")[2])
        if not FILE.match(name):
            return
        self.is_page = True
        one: File = {"filename": name, "url": url, "hashes": _hash(fragment)}
        if told.get("data-requires-python"):
            one["requires-python"] = told["data-requires-python"]
        for key in ("core-metadata", "dist-info-metadata"):
            if f"data-{key}" in told:
                one[key] = _hash(told[f"data-{key}"] or "") or True
        if "data-yanked" in told:
            one["yanked"] = told["data-yanked"] or True
        self.files.append(one)


def _hash(text: str) -> dict[str, str]:
    name, _, value = text.partition("=")
    return {name: value} if value and re.fullmatch(r"[a-z0-9_]+", name) else {}


def metadata_hashes(one: File) -> Mapping[str, str] | None:
    """The digests of a file's separate metadata; None where the index has none."""
    told = one.get("core-metadata", one.get("dist-info-metadata"))
    if isinstance(told, Mapping):
        return told
    return {} if told is True else None


def write_json(name: str, files: list[File], place: Callable[[str], str]) -> bytes:
    """The page as JSON; `place`: a file's name → its address at the mirror."""
    listed = [{**one, "url": place(one["filename"])} for one in files]
    return json.dumps({"meta": {"api-version": "1.0"}, "name": name, "files": listed}).encode()


def write_html(name: str, files: list[File], place: Callable[[str], str]) -> bytes:
    """The same as HTML."""
    lines = [
        "<!DOCTYPE html>", "<html><head>", '<meta name="pypi:repository-version" content="1.0">',
        f"<title>Links for {html.escape(name)}</title>", f"</head><body><h1>Links for {html.escape(name)}</h1>",
    ]  # fmt: skip
    lines += [_anchor(one, place(one["filename"])) for one in files]
    return "\n".join([*lines, "</body></html>", ""]).encode()


def _anchor(one: File, address: str) -> str:
    preferred = sorted(one["hashes"].items(), key=lambda pair: pair[0] != "sha256")
    attributes = {"href": address + (f"#{preferred[0][0]}={preferred[0][1]}" if preferred else "")}
    if one.get("requires-python"):
        attributes["data-requires-python"] = str(one["requires-python"])
    hashes = metadata_hashes(one)
    if hashes is not None:
        told = next((f"{name}={value}" for name, value in hashes.items()), "true")
        attributes |= {"data-core-metadata": told, "data-dist-info-metadata": told}
    if one.get("yanked"):
        attributes["data-yanked"] = one["yanked"] if isinstance(one["yanked"], str) else ""
    shown = " ".join(f'{name}="{html.escape(value)}"' for name, value in attributes.items())
    return f"<a {shown}>{html.escape(one['filename'])}</a><br>"


def chosen_form(accept: str) -> str:
    """Which of the three media types an Accept header likes best; HTML where it says nothing that fits."""
    likes: dict[str, float] = {}
    for part in accept.lower().split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        weight = next((piece[2:] for piece in parameters if piece.startswith("q=")), "1")
        try:
            likes[kind.replace(".latest+", ".v1+")] = float(weight)
        except ValueError:
            continue
    best = max((JSON, HTML, PLAIN_HTML), key=lambda kind: likes.get(kind, 0.0))
    return best if likes.get(best, 0.0) > 0 else PLAIN_HTML
