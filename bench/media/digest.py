"""The digest of a file: made once for each content, name and settings, then taken from the cache."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bench.cache import cache_folder
from bench.errors import InfraError
from bench.media.found import Found
from bench.media.settings import VERSION, Settings
from bench.media.shown import SUMMARY, write_digest
from bench.media.transcript import HEARD_NOTHING, NONE, SILENT, WAV, transcribe
from bench.tree import digest, file_sha256, list_tree

_ROOT = Path(__file__).parents[2]
_KEPT_VARIABLES = ("PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


class Digest(NamedTuple):
    """A digest's folder in the cache, and the tree digest of what is in it."""

    folder: Path
    sha256: str


@dataclass(frozen=True)
class _Ended:
    """How the reading process ended, and the end of what it printed."""

    code: int
    said: str


def digest_of(path: Path, settings: Settings, name: str | None = None) -> Digest:
    """The digest of the file at `path`; `name` is what it is called in it, its own by default.

    A damaged file has a digest that says so. Raises InfraError for trouble of this machine.
    """
    source = {"name": name or path.name, **_content(path)}
    key = hashlib.sha256(json.dumps([VERSION, source, settings.describe()], sort_keys=True).encode()).hexdigest()
    folder = cache_folder("digests") / key
    if not _is_whole(folder):
        _make(path, source, settings, folder)
    return Digest(folder, digest(list_tree(folder)))


def keep_digest(path: Path, settings: Settings, target: Path) -> str:
    """Have the digest of the file at `path` in folder `target`, which is replaced; its tree digest."""
    made = digest_of(path, settings)
    if target.exists():
        if digest(list_tree(target)) == made.sha256:
            return made.sha256
        shutil.rmtree(target)
    shutil.copytree(made.folder, target)
    return made.sha256


def _content(path: Path) -> dict[str, Any]:
    if path.is_symlink():
        return {"sha256": hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest(), "bytes": 0}
    return {"sha256": file_sha256(path), "bytes": path.stat().st_size}


def _make(path: Path, source: dict[str, Any], settings: Settings, folder: Path) -> None:
    """Make `folder` by a rename, so that it is whole or not there; of two makers at once the first wins."""
    with tempfile.TemporaryDirectory(prefix=".making-", dir=folder.parent) as made:
        scratch = Path(made)
        pictures = scratch / "digest"
        pictures.mkdir(mode=0o755)
        found = _read(path, str(source["name"]), settings, scratch, pictures)
        transcript = _transcript(found, settings, scratch, str(source["name"]))
        write_digest(pictures, source, settings, found, transcript)
        if folder.exists() and not _is_whole(folder):
            shutil.rmtree(folder)
        try:
            pictures.rename(folder)
        except OSError:
            if not _is_whole(folder):
                raise


def _transcript(found: Found, settings: Settings, scratch: Path, name: str) -> str:
    if not found.speech:
        return SILENT
    return (transcribe(scratch / WAV, settings, name) or HEARD_NOTHING) if settings.asr else NONE


def _read(path: Path, name: str, settings: Settings, scratch: Path, pictures: Path) -> Found:
    if path.is_symlink():
        return Found(unread=["all of it: it is a link, which is not followed"])
    job = {
        "name": name,
        "settings": {field: getattr(settings, field) for field in settings.__dataclass_fields__},
        "found": str(scratch / "found.json"),
        "wav": str(scratch / WAV),
    }
    (scratch / "job.json").write_text(json.dumps(job), encoding="utf-8")
    ended = _run(path, scratch, pictures, settings)
    if ended.code == 0:
        return Found.model_validate_json((scratch / "found.json").read_bytes())
    if ended.code > 0:
        raise InfraError(f"{name}: its reader ended with {ended.code}: {ended.said}")
    for half_made in pictures.iterdir():
        half_made.unlink()
    return Found(unread=[f"all of it: {_ended_by(-ended.code, settings)}"])


def _run(path: Path, scratch: Path, pictures: Path, settings: Settings) -> _Ended:
    """The reading process gets no key and no setting of ours but what it needs."""
    env = {key: os.environ[key] for key in _KEPT_VARIABLES if key in os.environ}
    env |= {
        "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [
        sys.executable,
        "-m",
        "bench.media.read",
        str(path.resolve()),
        str(pictures),
        str(scratch / "job.json"),
    ]
    with (scratch / "said.txt").open("w+b") as said:
        try:
            code = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=env,
                timeout=settings.wall_s,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise InfraError(
                f"{path}: its digest was not done in {settings.wall_s} s, of which it computed less than "
                f"{settings.cpu_s} s; the machine is overloaded, try again"
            ) from error
        said.seek(max(0, said.tell() - 2000))
        return _Ended(code, said.read().decode("utf-8", "replace").strip()[-400:])


def _ended_by(number: int, settings: Settings) -> str:
    if number in (signal.SIGXCPU, signal.SIGKILL):
        return f"reading it took more than {settings.cpu_s} s of computing"
    return f"its reader crashed ({signal.Signals(number).name})"


def _is_whole(folder: Path) -> bool:
    """Whether every file of a cached digest is as it was made."""
    try:
        told = {one["path"]: one["sha256"] for one in json.loads((folder / SUMMARY).read_bytes())["files"]}
        there = {entry.name for entry in folder.iterdir()}
        return there == {SUMMARY, *told} and all(file_sha256(folder / name) == told[name] for name in told)
    except (OSError, ValueError, KeyError, TypeError):
        return False
