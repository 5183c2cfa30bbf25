"""What the mirror answers for Python packages: a project's page and the files on it by GET; all else is refused.

Paths, each optionally behind `/~CLIENT` (a name of the caller that goes to the log):

    GET /simple/NAME/             the project's page, as HTML or as JSON (PEP 691), its links led to the mirror
    GET /files/NAME/FILE          a file that the page lists
    GET /files/NAME/FILE.metadata its separate metadata, where the page offers that (PEP 658)

A file comes from where the index says that it lies, is compared with the digest that the index lists, and is kept by
its sha256. Markers and outages are the npm mirror's (`mirror_app.py`). The list of all projects is not given.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from aiohttp import web

from sandboxes.mirror_answer import RegistryApp, Served, fault, own_address
from sandboxes.mirror_upstream import Missing, Outage
from sandboxes.pypi_pages import (
    FILE,
    JSON,
    METADATA,
    WANTED,
    File,
    NoPage,
    chosen_form,
    metadata_hashes,
    read_page,
    write_html,
    write_json,
)

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
LONGEST_NAME = 214
_KIND = "simple"


class Ask(NamedTuple):
    """What a path asks for. `name` is normalized; `item` a file's name, or for `refused` the reason."""

    client: str
    kind: str
    name: str = ""
    item: str = ""


def parse(method: str, raw_path: str) -> Ask:
    """Reads a request line; anything that is not one of the documented forms comes back as refused."""
    parts = [unquote(part) for part in raw_path.partition("?")[0].removeprefix("/").split("/")]
    client = parts.pop(0)[1:] if parts[0].startswith("~") and len(parts) > 1 else ""
    if method != "GET":
        return Ask(client, "refused", item=f"{method} is not allowed, only GET")
    match parts:
        case ["simple", name] | ["simple", name, ""] if _is_name(name):
            return Ask(client, "project", normalized(name))
        case ["files", name, file] if _is_name(name) and FILE.match(file):
            return Ask(client, "file", normalized(name), file)
        case ["files", name, file] if _is_name(name) and FILE.match(file.removesuffix(METADATA)):
            return Ask(client, "metadata", normalized(name), file)
    return Ask(client, "refused", item="no project and no file of one is named by this path")


def normalized(name: str) -> str:
    """A project's one spelling (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_name(name: str) -> bool:
    return len(name) <= LONGEST_NAME and NAME.match(name) is not None


class PypiApp(RegistryApp):
    """Answers for Python packages."""

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        began = time.monotonic()
        ask = parse(request.method, request.rel_url.raw_path)
        response: web.StreamResponse
        try:
            if ask.kind == "project":
                served = await self._page(ask, request)
                response, size = served.response(served.body), len(served.body)
            elif ask.kind in {"file", "metadata"}:
                path, served = await self._file(ask.name, ask.item)
                response, size = web.FileResponse(path, headers={"Content-Type": served.kind}), path.stat().st_size
            else:
                served = fault(403, "refused", ask.item)
                response, size = served.response(served.body), len(served.body)
        except Missing as error:
            served = fault(404, "missing", str(error))
            response, size = served.response(served.body), len(served.body)
        except (Outage, OSError) as error:  # OSError: the mirror's own disk
            served = fault(502, "outage", str(error))
            response, size = served.response(served.body), len(served.body)
        self._log.write(
            request, served, size, began, client=ask.client, kind=ask.kind, package=ask.name, item=ask.item
        )
        return response

    async def _page(self, ask: Ask, request: web.Request) -> Served:
        files, cache, note = await self._listed(ask.name)
        base = f"{own_address(request, ask.client)}files/{ask.name}/"
        form = chosen_form(request.headers.get("Accept", ""))
        write = write_json if form == JSON else write_html
        return Served(200, write(ask.name, files, lambda file: base + quote(file)), cache, form, note=note)

    async def _listed(self, name: str, *, fresh: bool = True) -> tuple[list[File], str, str]:
        """The project's files, how they were come by and a note. `fresh` False: a kept page will do, however old."""
        async with self._fetching[name, ""]:
            kept = await asyncio.to_thread(self._store.document, name, _KIND)
            if kept and (not fresh or time.time() - kept.fetched < self._fresh_s):
                return json.loads(kept.body), "hit", ""
            try:
                answer = await self._upstream.get(f"{quote(name)}/", accept=WANTED, etag=kept.etag if kept else "")
            except Outage as error:
                if kept:
                    return json.loads(kept.body), "stale", str(error)
                raise
            if answer.status == 304 and kept:
                files = json.loads(kept.body)
            else:
                try:
                    files = await asyncio.to_thread(read_page, answer.body, answer.kind, answer.address)
                except NoPage as error:
                    raise Outage(f"what came for {name} is no page of a package index ({error})") from error
            body = json.dumps(files, separators=(",", ":")).encode()
            await asyncio.to_thread(self._store.keep_document, name, _KIND, answer.etag, body)
            return files, "miss", ""

    async def _file(self, name: str, file: str) -> tuple[Path, Served]:
        kind = "application/octet-stream"
        async with self._fetching[name, file]:
            kept = await asyncio.to_thread(self._store.blob, name, file)
            if kept is not None:
                return kept, Served(200, b"", "hit", kind)
            address, hashes = await self._place(name, file)
            with self._store.receiving() as part:
                digests = await self._upstream.download_from(address, f"{name}/{file}", part)
                checked = await asyncio.to_thread(_compare, part, hashes, file)
                path = self._store.keep_blob(name, file, part, digests, checked=checked)
            note = "" if checked else "the index lists no digest to compare with"
            return path, Served(200, b"", "miss", kind, note=note)

    async def _place(self, name: str, file: str) -> tuple[str, Mapping[str, str]]:
        """A file's address at the index and its listed digests. Raises Missing for one that no page lists."""
        for fresh in (False, True):  # the kept page first: what was listed once lies where it lay
            files, _, _ = await self._listed(name, fresh=fresh)
            for one in files:
                if one["filename"] == file:
                    return one["url"], one["hashes"]
                hashes = metadata_hashes(one)
                if file == one["filename"] + METADATA and hashes is not None:
                    return one["url"] + METADATA, hashes
        raise Missing(f"{name} has no file {file}")


def _compare(received: Path, hashes: Mapping[str, str], file: str) -> bool:
    """True when the digest is the listed one, False when none is listed. Raises Outage when it differs."""
    known = [name for name in ("sha256", "sha512", "sha384", "sha224", "sha1", "md5") if hashes.get(name)]
    if not known:
        return False
    with received.open("rb") as content:
        found = hashlib.file_digest(content, lambda: hashlib.new(known[0], usedforsecurity=False)).hexdigest()
    if found != hashes[known[0]].lower():
        raise Outage(f"{file} arrived damaged: its digest is not the one that the index lists")
    return True
