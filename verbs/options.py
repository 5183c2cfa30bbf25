"""Options that several verbs share, and how verbs answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.errors import UsageError

Json = Annotated[bool, typer.Option("--json", help="Machine output on standard output, progress on standard error.")]
Only = Annotated[str, typer.Option(help="Case ids, separated by commas; the result is then a declared subset.")]
Retry = Annotated[
    str | None, typer.Option(help="Only what is unscored for this reason: infra, judge, or one case's name.")
]
Frozen = Annotated[
    Path | None, typer.Option(help="Recorded resources (`cdb dataset freeze`) for what applications ask elsewhere.")
]
Concurrency = Annotated[int, typer.Option(min=1, max=256, help="How many at a time.")]


def progress(line: str) -> None:
    from bench.terminal import safe

    print(safe(line), file=sys.stderr, flush=True)


def answer(as_json: bool, found: Any, lines: list[str]) -> None:
    from bench.terminal import safe, safe_json

    if as_json:
        print(safe_json(json.dumps(found, ensure_ascii=False, sort_keys=True)), flush=True)
    else:
        for line in lines:
            print(safe(line), flush=True)


def case_ids(only: str) -> tuple[str, ...]:
    ids = tuple(part.strip() for part in only.split(",") if part.strip())
    if only and not ids:
        raise UsageError(f"--only {only!r} names no case")
    return ids


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"--allow-private {text!r} is no ADDRESS:PORT")
    return host.strip("[]"), int(port)
