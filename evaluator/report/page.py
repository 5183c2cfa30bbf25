"""From results folders to the finished page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench.atomic import write_bytes
from bench.errors import UsageError
from evaluator.records import COLUMNS
from evaluator.report.anchors import anchor
from evaluator.report.cases import make_cases, tally
from evaluator.report.entries import Entry, group, make_entries
from evaluator.report.pictures import Shelf
from evaluator.report.reading import mapping, read_results
from evaluator.report.visible import visible
from evaluator.report.words import COLUMN_WORDS

TEMPLATES = Path(__file__).parent.parent / "templates"


def write_report(results: Sequence[Path], out: Path, *, title: str | None = None) -> Path:
    """Write one self-contained page about `results` (one folder per entry, as `cdb judge` and `cdb score` left it).

    `out` is the page when it ends in .html, else the folder that gets an index.html; returns the page's path.
    The same folders give the same bytes. Raises UsageError when `results` is empty or one is no results folder.
    """
    if not results:
        raise UsageError("a report needs at least one results folder; give what `cdb judge --out` wrote")
    target = out if out.suffix == ".html" else out / "index.html"
    write_bytes(target, render(results, title).encode("utf-8"))
    return target


def render(results: Sequence[Path], title: str | None) -> str:
    """The page's HTML."""
    shelf = Shelf()
    entries = make_entries([read_results(folder) for folder in results])
    cases = make_cases(entries, shelf)
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            title=title or f"Results on {_dataset_name(entries)}",
            policy=_policy(style, script),
            style=Markup(style),
            script=Markup(script),
            columns=COLUMNS,
            column_words=COLUMN_WORDS,
            entries=entries,
            groups=group(entries),
            cases=cases,
            criteria_count=sum(len(case.criteria) for case in cases),
            tallies={(e.slug, column): tally(cases, e, column) for e in entries for column in COLUMNS},
            pictures=list(shelf.uris()),
            left_out=shelf.left_out,
            scope=_scope(entries),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.globals["anchor"] = anchor
    return environment


def _finalize(value: Any) -> Any:
    """Every text on its way into the page is made visible; the autoescaping that follows makes it harmless."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _policy(style: str, script: str) -> str:
    """Content security policy: nothing loads, nothing runs but the page's own style and script, by hash."""

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"

    rules = ("default-src 'none'", "img-src data:", f"style-src {source(style)}", f"script-src {source(script)}")
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _dataset_name(entries: Sequence[Entry]) -> str:
    names = {str(mapping(entry.results.lock.get("dataset")).get("name") or "results") for entry in entries}
    return ", ".join(sorted(names))


def _scope(entries: Sequence[Entry]) -> list[str]:
    """The scope line's parts; entries that differ are all named."""

    def each(section: str, key: str) -> list[str]:
        values = [mapping(entry.results.lock.get(section)).get(key) for entry in entries]
        return list(dict.fromkeys(str(value) for value in values if value))

    parts = [f"Scope: {', '.join(each('scope', 'label')) or 'not declared'}"]
    judges = dict.fromkeys(
        " ".join(str(judge[key]) for key in ("name", "model") if judge.get(key))
        for judge in (mapping(entry.results.lock.get("judge")) for entry in entries)
    )
    if any(judges):
        parts.append(f"judge {', '.join(filter(None, judges))}")
    parts += [f"browser {version}" for version in each("browser", "version")]
    parts += [f"dataset {digest.removeprefix('sha256:')[:12]}" for digest in each("dataset", "digest")]
    return parts
