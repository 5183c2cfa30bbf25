"""SHA256SUMS against the files of a release: what is missing, a pointer, cut short, changed or not listed."""

from __future__ import annotations

import gzip
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from bench.archive_rules import Caps
from bench.errors import DataError
from bench.layout import CHECKSUMS, EVALUATION_ARCHIVE, MANIFEST, SOLVER_ARCHIVE, Release
from bench.tree import CHUNK_BYTES, file_sha256

_HEAD_BYTES = 512
_POINTERS = (
    (rb"version https://(git-lfs\.github\.com|hawser\.github\.com)/spec/", "Git-LFS pointer", "git lfs pull"),
    (rb"(/\.git)?/annex/objects/", "git-annex pointer", "git annex get ."),
    (rb"# xet version ", "Xet pointer", "git xet pull"),
)
_WEB_PAGE = re.compile(rb"\s*<(!doctype html|html|\?xml)", re.I)
_CODE = re.compile(r"[0-9a-fA-F]{64}")


class Fault(NamedTuple):
    """One fault of a release: the file's name in it, and a message that names the file and the remedy."""

    name: str
    message: str


def file_faults(release: Release) -> tuple[list[str], list[Fault], list[str]]:
    """Check every file that SHA256SUMS names.

    Gives the names of the good files in its order, the faults, and notes: files that nothing vouches for and
    nothing reads. Raises DataError when SHA256SUMS itself cannot be read.
    """
    good: list[str] = []
    faults: list[Fault] = []
    listed: dict[str, str] = {}
    for expected, name in _checksum_lines(release.folder / CHECKSUMS):
        if listed.setdefault(name, expected) != expected:
            faults.append(Fault(name, f"{CHECKSUMS} lists {name} with two checksums; download it again"))
    for name, expected in listed.items():
        if fault := _why_bad(release, name, expected):
            faults.append(Fault(name, fault))
        elif release.sha256.get(name, expected) != expected:
            what = f"{name} has the sha256 in {CHECKSUMS} but another one in {MANIFEST}"
            faults.append(Fault(CHECKSUMS, f"{what}; download both again"))
        elif not any(known.name == name for known in faults):
            good.append(name)
    needed = {SOLVER_ARCHIVE, EVALUATION_ARCHIVE, MANIFEST}
    for name in sorted(needed - set(listed)):
        faults.append(Fault(name, f"{CHECKSUMS} does not list {name}; download the whole release again"))
    notes = []
    for name in sorted(_files_here(release.folder) - set(listed) - needed - {CHECKSUMS}):
        if _is_read(name):
            remedy = "remove that file, or download the whole release again"
            faults.append(Fault(name, f"{CHECKSUMS} does not list {name}, so it cannot be trusted; {remedy}"))
        else:
            notes.append(f"{name} is not in {CHECKSUMS} and is not looked at")
    return good, faults, notes


def why_no_content(path: Path) -> str | None:
    """Why the file at `path` is not what its name says, whatever its checksum: missing, a pointer, a web page."""
    if not path.is_file():
        return _why_no_file(path)
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    for pattern, kind, command in _POINTERS:
        if re.match(pattern, head):
            return f"{path.name} is a {kind}, not the file itself; run `{command}` in {path.parent}"
    if _WEB_PAGE.match(head) and path.suffix in (".gz", ".parquet", ".zip", ".json", ".jsonl", ".csv"):
        return f"{path.name} is a web page, not the file itself; log in where it is kept, and download it again"
    return None if head else f"{path.name} is empty (0 bytes); download it again"


def _why_no_file(path: Path) -> str:
    if path.is_dir():
        return f"{path.name} is a folder, not a file; download it again"
    if not path.is_symlink():
        return f"{path.name} is missing from {path.parent}; download it again"
    target = str(path.readlink())
    if "annex/objects" in target:
        return f"{path.name} is a git-annex pointer, its content is not here; run `git annex get .` in {path.parent}"
    return f"{path.name} is a link to {target}, which does not exist; download it again"


def _why_bad(release: Release, name: str, expected: str) -> str | None:
    path = release.folder / name
    if why := why_no_content(path):
        return why.replace(path.name, name, 1)
    if file_sha256(path) == expected:
        return None
    if _is_truncated(path):
        return f"{name} is truncated ({path.stat().st_size} bytes); download it again"
    return f"{name} does not match its sha256 in {CHECKSUMS}; it was changed or damaged, download it again"


def _is_truncated(path: Path) -> bool:
    """Whether a gzip, parquet or zip file that begins well ends before its own end marker."""
    with path.open("rb") as stream:
        head = stream.read(4)
        stream.seek(max(0, path.stat().st_size - 4))
        tail = stream.read(4)
    if path.suffix == ".parquet":
        return head == b"PAR1" and tail != b"PAR1"
    if path.suffix == ".zip":
        return head.startswith(b"PK") and not zipfile.is_zipfile(path)
    return path.name.endswith(".tar.gz") and not _ends_like_a_tar(tail) and _gzip_breaks_off(path)


def _ends_like_a_tar(tail: bytes) -> bool:
    """Whether a gzip file's last four bytes, its unpacked size, are a tar's: whole blocks, and not nothing.

    A changed byte can make the decoder ask for more than there is; only a file that was cut lacks its last bytes.
    """
    size = int.from_bytes(tail, "little")
    return size > 0 and size % 512 == 0


def _gzip_breaks_off(path: Path) -> bool:
    left = Caps().unpacked_bytes(path.stat().st_size)
    try:
        with gzip.open(path) as stream:
            while left > 0 and (piece := stream.read(CHUNK_BYTES)):
                left -= len(piece)
    except EOFError:
        return True
    except (gzip.BadGzipFile, zlib.error):
        return False
    return False


def _checksum_lines(path: Path) -> Iterator[tuple[str, str]]:
    if why := why_no_content(path):
        raise DataError(f"{why}; nothing can be checked without it")
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 ({error}); download it again") from error
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r")
        if not line.strip():
            continue
        expected, _, name = line.partition(" ")
        name = (name[1:] if name[:1] in (" ", "*") else name).removeprefix("./")
        inner = PurePosixPath(name)
        if not _CODE.fullmatch(expected) or not name or "\0" in name or inner.is_absolute() or ".." in inner.parts:
            raise DataError(f"{path}, line {number}: no `sha256  name` line; download it again")
        yield expected.lower(), name


def _files_here(folder: Path) -> set[str]:
    """Files of the release itself; folders that people make beside them (`work/`, caches) are not entered."""
    places = (folder, *(folder / name for name in ("data", "rubrics", "assets")))
    files = (path for place in places if place.is_dir() for path in place.iterdir() if not path.is_dir())
    return {path.relative_to(folder).as_posix() for path in files if not path.name.startswith(".")}


def _is_read(name: str) -> bool:
    """Whether a check of ours reads this file."""
    path = PurePosixPath(name)
    return path.parts[0] in ("data", "rubrics") or (len(path.parts) == 1 and path.suffix == ".zip")
