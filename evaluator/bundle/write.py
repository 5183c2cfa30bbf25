"""Writing a bundle: a gzipped tar in name order with fixed times and owners, streamed, so that memory stays flat and
the same results give the same bytes (as far as two machines' zlib agree; the packed content agrees always)."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bench.atomic import sync_folder
from bench.errors import DataError
from bench.journal import JournalStream
from bench.redact import SHORTEST_SECRET, Redactor
from bench.strict_json import read_json
from bench.tree import Entry, file_entry, link_entry
from evaluator.bundle.contents import BOUND, MINE, Contents, Source, gather
from evaluator.bundle.layout import CARD, MADE_BY, README, BundleCard, ResultCard
from evaluator.bundle.readme import readme
from evaluator.exports.entry import results_name
from evaluator.fixed_archive import MTIME

LEVEL = 6
CHUNK_BYTES = 262_144
_IN_MEMORY_BYTES = 16 * 1024 * 1024
"""A text of ours above this is redacted through a file."""
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)$")


@dataclass(frozen=True)
class Suspicion:
    """Something that looks like a key in a text that must stay as it is."""

    place: str
    known: bool
    """It is the value of one of this process's own secret variables, not only a look-alike."""


def write_bundle(
    results: list[Path],
    out: Path,
    *,
    start: bool = False,
    built: bool = True,
    trajectories: bool = False,
    keep_suspected: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> BundleCard:
    """Write the bundle of these results to `out`, whole or not at all; gives what bundle.json says.

    `keep_suspected`: go on although a text that is bound by a hash looks as if it held a key. Raises UsageError for
    results that cannot be bundled, DataError for a broken seal or a secret that would get out.
    """
    secrets = [
        value for name, value in environment.items() if _SECRET_NAME.search(name) and len(value) >= SHORTEST_SECRET
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as room:
        contents = gather(results, Path(room) / "made", start=start, built=built, trajectories=trajectories)
        cards = [_result_card(folder, contents) for folder in results]
        holds = {"start": start, "built": built, "trajectories": trajectories}
        with _archive(Path(room) / "bundle", Redactor(secrets), secrets) as archive:
            archive.add_bytes(README, readme(cards, holds, contents.left_out).encode())
            for source in sorted(contents.sources, key=lambda source: source.name):
                archive.add(source, Path(room))
            archive.require_clean(keep_suspected)
            card = BundleCard(
                digest="",
                made_by=MADE_BY,
                results=cards,
                holds=holds,
                left_out=contents.left_out,
                redacted=sorted(archive.redacted),
                members=archive.members(),
            )
            card.digest = card.own_digest()
            archive.finish(card)
        (Path(room) / "bundle").replace(out)
    sync_folder(out.parent)
    return card


def _result_card(folder: Path, contents: Contents) -> ResultCard:
    name = results_name(folder)
    entry = contents.entry_of[name]
    place = next((place for place, told in contents.places.items() if entry and told.split("/")[1] == entry), None)
    solved = place.parent / "journal.jsonl" if place else None
    scores = folder / "scores.json"
    return ResultCard(
        name=name,
        entry=entry,
        label=str(read_json(scores).get("label")),
        journal_sha256=head(folder / "journal.jsonl"),
        solve_journal_sha256=head(solved)
        if solved and (solved.parent / "lock.json").is_file() and solved.is_file()
        else None,
        scores_sha256=hashlib.sha256(scores.read_bytes()).hexdigest(),
    )


def head(journal: Path) -> str:
    """sha256 of a journal's last line, which fixes every line before it. Raises DataError for a broken chain."""
    stream = JournalStream(journal)
    for _ in stream:
        pass
    return stream.last_hash


class _Archive:
    """The tar while it is written, and the canonical list of what is in it."""

    def __init__(self, tar: tarfile.TarFile, redactor: Redactor, secrets: list[str]) -> None:
        self._tar = tar
        self._redactor = redactor
        self._secrets = secrets
        self._entries: dict[bytes, Entry] = {}
        self.redacted: list[str] = []
        self._suspicions: list[Suspicion] = []

    def members(self) -> list[Entry]:
        return [self._entries[name] for name in sorted(self._entries)]

    def add(self, source: Source, room: Path) -> None:
        status = os.lstat(source.path)
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(source.path)
            self._put(link_entry(source.name, target), _info(source.name, tarfile.SYMTYPE, link=target), None)
        elif not stat.S_ISREG(status.st_mode):
            raise DataError(f"{os.fsdecode(source.path)!r} is neither file nor link; remove it and bundle again")
        elif source.kind == MINE:
            self._add_redacted(source, status.st_size, room)
        else:
            if source.kind == BOUND:
                self._look(source)
            with open(source.path, "rb") as stream:  # noqa: PTH123  (the path is bytes)
                self._add_stream(source.name, stream, status.st_size, executable=bool(status.st_mode & 0o100))

    def add_bytes(self, name: str, content: bytes) -> None:
        self._add_stream(name.encode(), io.BytesIO(content), len(content), executable=False)

    def _add_stream(self, name: bytes, stream: IO[bytes], size: int, *, executable: bool) -> None:
        counted = _Counted(stream)
        info = _info(name, tarfile.REGTYPE, size=size, executable=executable)
        self._put(None, info, counted)
        if stream.read(1):
            raise DataError(f"{os.fsdecode(name)!r} grew while it was bundled; wait until nothing writes it")
        self._entries[name] = file_entry(name, executable=executable, size=size, sha256=counted.sha256.hexdigest())

    def _put(self, entry: Entry | None, info: tarfile.TarInfo, content: _Counted | None) -> None:
        name = info.name.encode("utf-8", "surrogateescape")
        if name in self._entries:
            raise DataError(f"{info.name!r} would be in the bundle twice; bundle these results apart")
        if entry is not None:
            self._entries[name] = entry
        try:
            self._tar.addfile(info, content)  # type: ignore[arg-type]  # it only reads
        except OSError as error:
            if "unexpected end of data" in str(error):
                raise DataError(f"{info.name!r} shrank while it was bundled; wait until nothing writes it") from error
            raise
        self._tar.members.clear()  # type: ignore[attr-defined]  # tarfile remembers every member

    def _add_redacted(self, source: Source, size: int, room: Path) -> None:
        if size <= _IN_MEMORY_BYTES:
            raw = Path(os.fsdecode(source.path)).read_bytes()
            clean = self._redactor.bytes(raw)
            if clean != raw:
                self.redacted.append(os.fsdecode(source.name))
            self._add_stream(source.name, io.BytesIO(clean), len(clean), executable=False)
            return
        with tempfile.TemporaryFile(dir=room) as clean_file:
            before, after = self._redact_stream(source, clean_file)
            if before != after:
                self.redacted.append(os.fsdecode(source.name))
            length = clean_file.tell()
            clean_file.seek(0)
            self._add_stream(source.name, clean_file, length, executable=False)

    def _redact_stream(self, source: Source, out: IO[bytes]) -> tuple[str, str]:
        """Hashes of the text before and after."""
        before, after, stream = hashlib.sha256(), hashlib.sha256(), self._redactor.stream()

        def put(text: str) -> None:
            clean = text.encode("utf-8", "surrogateescape")
            after.update(clean)
            out.write(clean)

        path = Path(os.fsdecode(source.path))
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as text:
            while piece := text.read(CHUNK_BYTES):
                before.update(piece.encode("utf-8", "surrogateescape"))
                put(stream.feed(piece))
            put(stream.end())
        return before.hexdigest(), after.hexdigest()

    def _look(self, source: Source) -> None:
        with open(source.path, "rb") as stream:  # noqa: PTH123  (the path is bytes)
            for number, line in enumerate(stream, start=1):
                if self._redactor.bytes(line) != line:
                    known = any(secret.encode() in line for secret in self._secrets)
                    self._suspicions.append(Suspicion(f"{os.fsdecode(source.name)}, line {number}", known))

    def require_clean(self, keep_suspected: bool) -> None:
        known = [one.place for one in self._suspicions if one.known]
        if known:
            raise DataError(
                f"a secret of this machine's environment is in {'; '.join(known[:5])}: revoke it. These texts are "
                "bound by a hash chain, seal or digest and cannot be redacted, so this result cannot be bundled"
            )
        if self._suspicions and not keep_suspected:
            places = "; ".join(one.place for one in self._suspicions[:5])
            more = f" and {len(self._suspicions) - 5} more" if len(self._suspicions) > 5 else ""
            raise DataError(
                f"what looks like a key is in {places}{more}. These texts are bound by a hash chain, seal or digest, "
                "so they cannot be redacted. Look at them; where they are no keys of anybody's, pass --keep-suspected"
            )

    def finish(self, card: BundleCard) -> None:
        text = card.model_dump_json(by_alias=True, indent=1) + "\n"
        content = text.encode("utf-8", "backslashreplace")
        self._put(None, _info(CARD.encode(), tarfile.REGTYPE, size=len(content)), _Counted(io.BytesIO(content)))


class _Counted:
    """Reads through and hashes what passes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.sha256 = hashlib.sha256()

    def read(self, size: int) -> bytes:
        piece = self._stream.read(size)
        self.sha256.update(piece)
        return piece


@contextmanager
def _archive(path: Path, redactor: Redactor, secrets: list[str]) -> Iterator[_Archive]:
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=LEVEL, mtime=0) as packed,
        tarfile.open(
            fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
        ) as tar,
    ):
        yield _Archive(tar, redactor, secrets)


def _info(name: bytes, kind: bytes, *, size: int = 0, executable: bool = False, link: bytes = b"") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name.decode("utf-8", "surrogateescape"))
    info.type, info.size, info.mtime = kind, size, MTIME
    info.linkname = link.decode("utf-8", "surrogateescape")
    info.mode = 0o755 if executable else 0o644
    info.uid, info.gid, info.uname, info.gname = 0, 0, "", ""
    return info
