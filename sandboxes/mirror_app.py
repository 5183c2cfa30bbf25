"""What the mirror answers: package documents, version documents and tarballs by GET; all else is refused.

Paths, each optionally behind `/~CLIENT` (a name of the caller that goes to the log, so that two builds
which share a mirror can be told apart):

    GET /NAME                    package document        NAME is `pkg` or `@scope/pkg` (slash may be %2f)
    GET /NAME/VERSION            version document
    GET /NAME/-/FILE.tgz         tarball (also /NAME/download/FILE.tgz, which some registries' locks hold)
    GET /-/ping                  {}

Documents are fetched again when older than `fresh_s`, and served however old when the registry is away.
A tarball is compared with the digest that the registry lists before it is kept or served. An answer that
is not the registry's own carries the header `x-cdb-mirror`: `missing`, `outage` or `refused`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from aiohttp import web

from sandboxes.mirror_answer import RegistryApp, Served, fault, own_address
from sandboxes.mirror_upstream import Digests, Missing, Outage

PLACEHOLDER = "cdb-mirror:/"
"""Stands for the mirror's own address in kept documents; the address differs from caller to caller."""
ABBREVIATED = "application/vnd.npm.install-v1+json"
NAME = re.compile(r"(?:@[A-Za-z0-9~][A-Za-z0-9._~-]*/)?[A-Za-z0-9_~!'()*-][A-Za-z0-9._~!'()*-]*\Z")
ELSEWHERE = "cdbTarball"
"""Key in a kept `dist`: the registry's own address of a tarball that does not lie at the usual place."""
Dist = dict[str, str]
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_~-]*\Z")
FILE = re.compile(r"[A-Za-z0-9_~!'()*-][A-Za-z0-9._+~!'()*-]*\.(?:tgz|tar\.gz)\Z")


class Ask(NamedTuple):
    """What a path asks for. `item` is the version or the file; kind `refused` carries the reason in it."""

    client: str
    kind: str
    name: str = ""
    item: str = ""


def parse(method: str, raw_path: str) -> Ask:
    """Reads a request line; anything that is not one of the documented forms comes back as refused."""
    parts = [unquote(part) for part in raw_path.partition("?")[0].lstrip("/").split("/")]
    client = ""
    while parts[0].startswith("~") and len(parts) > 1:  # npm puts the registry's path before it a second time
        client = parts.pop(0)[1:]
    if method != "GET":
        return Ask(client, "refused", item=f"{method} is not allowed, only GET")
    if parts == ["-", "ping"]:
        return Ask(client, "ping")
    scoped = parts[0].startswith("@") and "/" not in parts[0] and len(parts) > 1
    name = "/".join(parts[:2]) if scoped else parts[0]
    match parts[2 if scoped else 1 :]:
        case _ if not NAME.match(name) or name == "-" or len(name) > 214:
            pass
        case []:
            return Ask(client, "package", name)
        case [version] if VERSION.match(version):
            return Ask(client, "version", name, version)
        case ["-" | "download", file] if FILE.match(file):
            return Ask(client, "tarball", name, file)
    return Ask(client, "refused", item="no package, version or tarball is named by this path")


class MirrorApp(RegistryApp):
    """Answers for npm packages."""

    async def _handle(self, request: web.Request) -> web.Response:
        began = time.monotonic()
        ask = parse(request.method, request.rel_url.raw_path)
        base = own_address(request, ask.client)
        served = await self._serve(ask, abbreviated=ABBREVIATED in request.headers.get("Accept", ""))
        body = served.body
        if ask.kind in {"package", "version"} and served.status == 200:
            body = body.replace(f'"{PLACEHOLDER}'.encode(), f'"{base}'.encode())
        self._log.write(
            request, served, body, began, client=ask.client, kind=ask.kind, package=ask.name, item=ask.item
        )
        return served.response(body)

    async def _serve(self, ask: Ask, *, abbreviated: bool) -> Served:
        if ask.kind == "refused":
            return fault(403, "refused", ask.item)
        if ask.kind == "ping":
            return Served(200, b"{}")
        try:
            if ask.kind == "tarball":
                return await self._tarball(ask.name, ask.item)
            short = abbreviated and ask.kind == "package"
            return await self._document(ask.name, ask.item, "short" if short else "full")
        except Missing as error:
            return fault(404, "missing", str(error))
        except (Outage, OSError) as error:  # OSError: the mirror's own disk
            return fault(502, "outage", str(error))

    async def _document(self, name: str, version: str, kind: str) -> Served:
        key = f"{name}/{version}" if version else name
        async with self._fetching[key, kind]:
            kept = await asyncio.to_thread(self._store.document, key, kind)
            if kept and time.time() - kept.fetched < self._fresh_s:
                return Served(200, kept.body, "hit")
            accept = f"{ABBREVIATED}; q=1.0, application/json; q=0.8" if kind == "short" else "application/json"
            path = quote(name, safe="@") + (f"/{quote(version)}" if version else "")
            try:
                answer = await self._upstream.get(path, accept=accept, etag=kept.etag if kept else "")
            except Outage as error:
                if kept:
                    return Served(200, kept.body, "stale", note=str(error))
                raise
            if answer.status == 304 and kept:
                body = kept.body
            else:
                body = await asyncio.to_thread(_with_placeholders, name, answer.body)
            await asyncio.to_thread(self._store.keep_document, key, kind, answer.etag, body)
            return Served(200, body, "miss")

    async def _tarball(self, name: str, file: str) -> Served:
        async with self._fetching[name, file]:
            kept = await asyncio.to_thread(self._store.blob, name, file)
            if kept is not None:
                return Served(200, await asyncio.to_thread(kept.read_bytes), "hit", "application/octet-stream")
            listing = asyncio.create_task(self._listed(name, file))
            try:
                with self._store.receiving() as part:
                    digests = await self._download(name, file, part, listing)
                    checked = _compare(await listing, digests, file)
                    content = await asyncio.to_thread(part.read_bytes)
                    self._store.keep_blob(name, file, part, digests, checked=checked)
            finally:
                listing.cancel()
            note = "" if checked else "the registry lists no digest to compare with"
            return Served(200, content, "miss", "application/octet-stream", note=note)

    async def _download(self, name: str, file: str, part: Path, listing: asyncio.Task[Dist]) -> Digests:
        """From the registry's usual place for a tarball, or where it says that this one lies."""
        try:
            return await self._upstream.download(f"{quote(name, safe='@/')}/-/{quote(file)}", part)
        except Missing:
            elsewhere = self._upstream.own_path((await listing).get(ELSEWHERE, ""))
            if not elsewhere:
                raise
            return await self._upstream.download(elsewhere, part)

    async def _listed(self, name: str, file: str) -> Dist:
        """What the registry lists for this file (`integrity`, `shasum`); empty where it lists nothing."""
        bare = name.rpartition("/")[2]
        version = re.sub(r"\.(?:tgz|tar\.gz)\Z", "", file.removeprefix(f"{bare}-"))
        for kind in ("short", "full"):
            kept = await asyncio.to_thread(self._store.document, name, kind)
            dist = await asyncio.to_thread(_dist, kept.body, version) if kept else {}
            if dist:
                return dist
        if not VERSION.match(version):
            return {}
        try:
            return _dist((await self._document(name, version, "full")).body, version)
        except (Missing, Outage):
            return {}


def _with_placeholders(name: str, body: bytes) -> bytes:
    """The document with every tarball's address led to the mirror. Raises Outage when it is no document."""
    try:
        document = json.loads(body)
        if "versions" not in document and "unpublished" in document.get("time", {}):
            raise Missing(f"{name} was unpublished")
        for version in document["versions"].values() if "versions" in document else [document]:
            dist = version["dist"]
            address = str(dist["tarball"])
            file = address.partition("?")[0].rpartition("/")[2]
            if not address.endswith(f"/{name}/-/{file}"):
                dist[ELSEWHERE] = address
            dist["tarball"] = f"{PLACEHOLDER}{name}/-/{file}"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Outage(f"what came for {name} is no package document ({type(error).__name__}: {error})") from error
    return json.dumps(document, separators=(",", ":")).encode()


def _dist(body: bytes, version: str) -> Dist:
    """The `dist` part of one version in a package or version document; empty where it is not there."""
    document = json.loads(body)
    found = document.get("versions", {}).get(version, {}) if "versions" in document else document
    return {key: value for key, value in found.get("dist", {}).items() if isinstance(value, str)}


def _compare(dist: Dist, digests: Digests, file: str) -> bool:
    """True when the digest is the listed one, False when none is listed. Raises Outage when it differs."""
    integrity = [entry for entry in dist.get("integrity", "").split() if entry.startswith("sha512-")]
    if integrity:
        same = any(_hex(entry[7:]) == digests.by["sha512"] for entry in integrity)
    elif dist.get("shasum"):
        same = dist["shasum"].lower() == digests.by["sha1"]
    else:
        return False
    if not same:
        raise Outage(f"{file} arrived damaged: its digest is not the one that the registry lists")
    return True


def _hex(text: str) -> str:
    try:
        return base64.b64decode(text).hex()
    except binascii.Error:
        return ""
