"""`lock.json`: everything that identifies a run. Going on under another identity is refused with a diff."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

from bench import __version__
from bench.atomic import write_json
from bench.errors import DataError, UsageError

SCHEMA = "cdb.lock/1"


def hold_identity(folder: Path, identity: dict[str, Any], *, may_fill: str | None = None) -> None:
    """Write `folder/lock.json`, or check that the one there says the same.

    `identity` must hold only what can change a result. `may_fill`: a key whose entries may go from null to a value
    (a submission that infrastructure had kept from being made). Raises UsageError listing each difference.
    """
    path = folder / "lock.json"
    wanted = json.loads(json.dumps({"schema": SCHEMA, **identity}))
    if not path.exists():
        write_json(path, wanted)
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}); restore it, or choose another --out") from error
    if may_fill and _filled(found.get(may_fill), wanted.get(may_fill)):
        found[may_fill] = wanted[may_fill]
        if found == wanted:
            write_json(path, wanted)
            return
    lines = list(_differences("", found, wanted))
    if lines:
        raise UsageError(
            f"{folder} was begun as another run; it cannot be gone on with under this identity:\n  "
            + "\n  ".join(lines)
            + "\nChoose another --out, or give the settings of before."
        )


def _filled(found: Any, wanted: Any) -> bool:
    """Whether `wanted` says what `found` says, but for entries that were null."""
    return (
        isinstance(found, dict)
        and isinstance(wanted, dict)
        and found.keys() == wanted.keys()
        and all(value in (None, wanted[key]) for key, value in found.items())
    )


def versions() -> dict[str, str]:
    """What our own side ran on."""
    return {"cdb": __version__, "python": platform.python_version()}


def _differences(prefix: str, found: Any, wanted: Any) -> list[str]:
    if isinstance(found, dict) and isinstance(wanted, dict):
        lines = []
        for key in sorted(found.keys() | wanted.keys()):
            lines += _differences(f"{prefix}.{key}" if prefix else key, found.get(key), wanted.get(key))
        return lines
    return [] if found == wanted else [f"{prefix}: was {_short(found)}, now {_short(wanted)}"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "…"
