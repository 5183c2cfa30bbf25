"""Taking secrets out of what a trial leaves for people to read: never out of the submission itself."""

from __future__ import annotations

from pathlib import Path

from bench.redact import Redactor

_PIECE_CHARS = 256 * 1024
_LOOK_BYTES = 8192


def redact_logs(folder: Path, redactor: Redactor) -> None:
    """Rewrite the trial's output and the agent's own logs below `folder` without secrets; binary files stay."""
    own = folder / "agent"
    for path in (folder / "stdout.log", folder / "stderr.log", *sorted(own.rglob("*"))):
        if path.is_file() and not path.is_symlink() and not _is_binary(path):
            _redact_file(path, redactor)


def _redact_file(path: Path, redactor: Redactor) -> None:
    """Piece by piece, so that memory stays flat whatever an agent printed."""
    stream = redactor.stream()
    clean = path.with_name(f".{path.name}.clean")
    how = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""}
    with path.open("r", **how) as source, clean.open("w", **how) as target:  # type: ignore[call-overload]
        while piece := source.read(_PIECE_CHARS):
            target.write(stream.feed(piece))
        target.write(stream.end())
    clean.replace(path)


def _is_binary(path: Path) -> bool:
    with path.open("rb") as stream:
        return b"\0" in stream.read(_LOOK_BYTES)
