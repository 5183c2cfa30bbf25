"""The prompts: files under `evaluator/prompts/`, rendered strictly, hashed into the lock."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

FOLDER = Path(__file__).parent.parent.parent / "prompts"


@cache
def _environment() -> Environment:
    return Environment(  # plain text for a model, no HTML; data goes between fences
        loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True,
        lstrip_blocks=True,
    )  # fmt: skip


def render(name: str, **values: Any) -> str:
    """`prompts/NAME.md` with `values` put in; an unknown name in it is an error."""
    return _environment().get_template(f"{name}.md").render(**values)


def prompts_digest(*names: str) -> str:
    """sha256 over the named prompt files."""
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(name.encode() + b"\0" + (FOLDER / f"{name}.md").read_bytes() + b"\0")
    return digest.hexdigest()
