"""Addresses elsewhere that an application's source loads things from: read off its files, nothing runs."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

MAX_FILES = 3_000
MAX_FILE_BYTES = 4 * 1024 * 1024
SKIPPED = frozenset({"node_modules", ".git", "_attachments", "_annotations", "__MACOSX"})
SOURCES = frozenset(
    [".html", ".htm", ".css", ".scss", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".vue", ".svelte"]
)
_ADDRESS = r"(?:https?:)?//[\w.-]+\.?[\w-]*(?::\d+)?[^\s\"'`<>()\\]*"
_ELEMENTS = "script|img|source|video|audio|iframe|embed|track|input|image|use"
_SUFFIXES = "js|mjs|css|png|jpe?g|gif|webp|avif|svg|ico|woff2?|ttf|otf|mp3|m4a|ogg|wav|mp4|webm|wasm"
_LOADED = (
    re.compile(rf"""<(?:{_ELEMENTS})\b[^>]*?\b(?:src|href|poster)\s*=\s*["']?({_ADDRESS})""", re.IGNORECASE),
    re.compile(rf"""\bsrcset\s*=\s*["'][^"']*?({_ADDRESS})""", re.IGNORECASE),
    re.compile(rf"""\burl\(\s*["']?({_ADDRESS})""", re.IGNORECASE),
    re.compile(rf"""@import\s+["']({_ADDRESS})"""),
    re.compile(rf"""\b(?:from|import|fetch|importScripts)\s*\(?\s*["'`]({_ADDRESS})"""),
)  # fmt: skip
_LINK = re.compile(r"<link\b[^>]*>", re.IGNORECASE)
_LINK_LOADS = re.compile(
    r"""\brel\s*=\s*["']?[^"'>]*(?:stylesheet|icon|preload|modulepreload|manifest)""", re.IGNORECASE
)
_HREF = re.compile(rf"""\bhref\s*=\s*["']?({_ADDRESS})""", re.IGNORECASE)
_ASSET = re.compile(rf"""["'`]({_ADDRESS}\.(?:{_SUFFIXES})(?:\?[^"'`\s]*)?)["'`]""", re.IGNORECASE)
LOOPBACK = ("localhost", "127.", "0.0.0.0", "[::1]", "::1")


class Address(NamedTuple):
    """A whole address (`https:` where the source leaves the scheme open), its host, and a file that has it."""

    url: str
    host: str
    file: str


def addresses_in(tree: Path) -> Iterator[Address]:
    """Each address elsewhere that a source below `tree` loads from or names as an asset, once, in file order."""
    seen: set[str] = set()
    for path in _sources(tree):
        text = path.read_bytes()[:MAX_FILE_BYTES].decode("utf-8", "replace")
        for url in _loaded(text):
            if url not in seen:
                seen.add(url)
                yield Address(url, urlsplit(url).netloc, path.relative_to(tree).as_posix())


def addresses_in_css(text: str) -> Iterator[str]:
    """What a style sheet loads, absolute or relative, as it is written."""
    for match in re.finditer(
        r"""\burl\(\s*(?:"([^"]*)"|'([^']*)'|([^"')\s]+))\s*\)|@import\s+["']([^"']+)["']""", text
    ):
        url = next(group for group in match.groups() if group is not None)
        if url and not url.startswith(("data:", "#")):
            yield url


def _loaded(text: str) -> Iterator[str]:
    patterns = [*_LOADED, _ASSET]
    found = [match.group(1) for pattern in patterns for match in pattern.finditer(text)]
    for link in _LINK.findall(text):
        if _LINK_LOADS.search(link) and (match := _HREF.search(link)):
            found.append(match.group(1))
    for address in found:
        url = html.unescape(address)
        url = f"https:{url}" if url.startswith("//") else url
        try:
            host = urlsplit(url).hostname or ""
        except ValueError:
            continue  # no address at all, whatever it looks like
        if host and "." in host and not host.startswith(LOOPBACK) and "${" not in url:
            yield url


def _sources(tree: Path) -> Iterator[Path]:
    left = MAX_FILES
    for place, folders, names in os.walk(tree):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(names):
            path = Path(place) / name
            if path.suffix.lower() in SOURCES and not path.is_symlink() and left > 0:
                left -= 1
                yield path
