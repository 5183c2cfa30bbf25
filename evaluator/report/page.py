"""From results folders to the finished site."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench.errors import UsageError
from evaluator.records import COLUMNS
from evaluator.report import plots
from evaluator.report.cases import CaseView, make_cases, tally
from evaluator.report.entries import Entry, Group, group, make_entries
from evaluator.report.pictures import Shelf
from evaluator.report.put import Site
from evaluator.report.reading import mapping, read_results
from evaluator.report.solved import read_trials
from evaluator.report.visible import visible
from evaluator.report.words import COLUMN_WORDS

TEMPLATES = Path(__file__).parent.parent / "templates"


def write_report(results: Sequence[Path], out: Path, *, title: str | None = None) -> Path:
    """Write a site about `results` (one folder per entry, as `cdb judge` and `cdb score` left it).

    `out` is the page to open when it ends in .html, else the folder that gets an index.html; everything else goes
    into `NAME-files/` beside it. Returns the page's path. The same folders give the same bytes. Raises UsageError
    when `results` is empty, one is no results folder, or `NAME-files/` is something else.
    """
    return Writer(results, out, title=title).write()


def write_waiting(page: Path, title: str, standing: str) -> Path:
    """A live page for a run that has nothing to show yet; `standing` says in words how it stands."""
    site = Site(page)
    told = {"title": title, "columns": COLUMNS, "column_words": COLUMN_WORDS, "standing": standing}
    Pages(site, live=True).put_home("waiting.html.j2", told)
    site.finish()
    return page


class Writer:
    """Writes the site, again and again for `cdb view`: pictures are read once, and only what changed is written.

    With `live` the pages ask the server they came from whether there is a newer one.
    """

    def __init__(self, results: Sequence[Path], out: Path, *, title: str | None = None, live: bool = False) -> None:
        if not results:
            raise UsageError("a report needs at least one results folder; give what `cdb judge --out` wrote")
        self.page = out if out.suffix == ".html" else out / "index.html"
        self._results, self._title, self._live = list(results), title, live
        self._site = Site(self.page)
        self._shelf = Shelf(self._site)
        self._pages = Pages(self._site, live)
        self._cases: dict[str, bytes] = {}
        """Case → what its pages were last made of."""

    def write(self, standing: str = "") -> Path:
        """One generation; `standing` says in words how a run that still goes on stands."""
        entries = make_entries([read_results(folder) for folder in self._results])
        trials = {entry.slug: read_trials(entry.results) for entry in entries}
        cases = make_cases(entries, trials, self._shelf)
        groups = group(entries)
        shared = {
            "title": self._title or f"Results on {_dataset_name(entries)}",
            "entries": entries,
            "cases": cases,
            "columns": COLUMNS,
            "column_words": COLUMN_WORDS,
            "standing": standing,
        }
        overview = {
            "groups": groups,
            "plots": _plots(self._site, groups, entries, cases),
            "tallies": {(e.slug, c): _tally(cases, place, c) for place, e in enumerate(entries) for c in COLUMNS},
            "criteria_count": sum(len(case.criteria) for case in cases),
            "scope": _scope(entries),
        }
        self._pages.put_home("overview.html.j2", shared | overview)
        for place, entry in enumerate(entries):
            own = {"entry": entry, "standings": [(case, case.standings[place]) for case in cases]}
            own |= {"tallies": {column: _tally(cases, place, column) for column in COLUMNS}}
            self._pages.put(entry.page, "agent.html.j2", shared | own)
        for number, case in enumerate(cases):
            self._put_case(case, number, shared)
        self._site.finish()
        return self.page

    def _put_case(self, case: CaseView, number: int, shared: dict[str, Any]) -> None:
        cases: list[CaseView] = shared["cases"]
        if self._live and self._unchanged(case, number, shared):
            return
        own = shared | {"case": case, "number": number + 1}
        around = {"before": cases[number - 1].page if number else "", "after": ""}
        if number + 1 < len(cases):
            around["after"] = cases[number + 1].page
        self._pages.put(case.page, "case.html.j2", own | around)
        rows = [row for near in cases_around(cases, number) for row in near.criteria]
        pages = [row.page for row in rows]
        for row in case.criteria:
            at = pages.index(row.page)
            around = {
                "before": pages[at - 1] if at else "",
                "after": pages[at + 1] if at + 1 < len(pages) else "",
            }
            self._pages.put(row.page, "criterion.html.j2", own | around | {"row": row})
        for place, standing in enumerate(case.standings):
            around = {
                "before": cases[number - 1].standings[place].page if number else "",
                "after": cases[number + 1].standings[place].page if number + 1 < len(cases) else "",
            }
            self._pages.put(standing.page, "trial.html.j2", own | around | {"standing": standing})

    def _unchanged(self, case: CaseView, number: int, shared: dict[str, Any]) -> bool:
        """Nothing on this case's pages differs from the last generation; its files are kept then."""
        near = [(other.page, [row.page for row in other.criteria]) for other in cases_around(shared["cases"], number)]
        told = repr((case, near, shared["title"], len(shared["cases"]))).encode("utf-8", "surrogatepass")
        mark = hashlib.sha256(told).digest()
        pages = [case.page, *(row.page for row in case.criteria), *(one.page for one in case.standings)]
        if self._cases.get(case.id) != mark or not all(map(self._site.has, pages)):
            self._cases[case.id] = mark
            return False
        self._site.keep(*pages)
        return True


def cases_around(cases: Sequence[CaseView], number: int) -> Sequence[CaseView]:
    """The case before, this one, the one after: pages link to their neighbours."""
    return cases[max(0, number - 1) : number + 2]


@dataclass
class Pages:
    """Renders templates into a site's pages."""

    site: Site
    live: bool

    def __post_init__(self) -> None:
        read = {
            name: (TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js", "live.js")
        }
        self._style = read["report.css"]
        self._scripts = [*([read["live.js"]] if self.live else []), read["report.js"]]
        self._environment = _environment()
        self._given = {
            "policy": _policy(self._style, self._scripts, self.live),
            "style": Markup(self._style),
            "scripts": [Markup(script) for script in self._scripts],
        }

    def put_home(self, template: str, values: dict[str, Any]) -> None:
        self.site.put_page(self._render(template, values | {"root": self.site.name, "home": "#top"}))

    def put(self, name: str, template: str, values: dict[str, Any]) -> None:
        """A page one folder below the site's own."""
        home = f"../../{quote(self.site.page.name)}"
        self.site.put(name, self._render(template, values | {"root": "../", "home": home}))

    def _render(self, template: str, values: dict[str, Any]) -> bytes:
        return self._environment.get_template(template).render(self._given | values).encode("utf-8")


@functools.cache
def _environment() -> Environment:
    """One for the process: compiling the templates takes longer than rendering a page. It is never changed."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )


def _finalize(value: Any) -> Any:
    """Every text on its way into the page is made visible; the autoescaping that follows makes it harmless."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _policy(style: str, scripts: Sequence[str], live: bool) -> str:
    """Content security policy: only the site's own pictures and recordings load, only its own style and scripts, by
    hash, count; nothing is asked for elsewhere. A live page may ask its server for itself."""

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"

    rules = [
        "default-src 'none'", "img-src 'self' data:", "media-src 'self'", f"style-src {source(style)}",
        f"script-src {' '.join(source(script) for script in scripts)}", "base-uri 'none'", "form-action 'none'",
    ]  # fmt: skip
    return "; ".join(rules + (["connect-src 'self'"] if live else []))


def _plots(
    site: Site, groups: Sequence[Group], entries: Sequence[Entry], cases: Sequence[CaseView]
) -> dict[str, plots.Plot]:
    """Name → plot. Groups that may not stand in one table get plots of their own, numbered."""
    made = {}
    for number, members in enumerate(groups, start=1):
        for name, drawing, table in (
            ("leaderboard", plots.leaderboard(members), plots.scores_csv(members.entries)),
            ("attachments", plots.strata(members), plots.strata_csv(members)),
            ("cost", plots.cost(members.entries), plots.cost_csv(members.entries)),
        ):
            if drawing is not None:
                key = f"{name}-{number}"
                made[key] = plots.put_plot(site, key, drawing, table)
    made["verdicts"] = plots.put_plot(site, "verdicts", plots.heat(cases, entries), plots.verdicts_csv(cases))
    return made


def _tally(cases: Sequence[CaseView], place: int, column: Any) -> Any:
    return tally((finding for case in cases for finding in case.standings[place].findings), column)


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
    parts += [f"browser {version}" for version in [*each("browser", "version"), *each("browser", "chromium")]]
    parts += [f"dataset {digest.removeprefix('sha256:')[:12]}" for digest in each("dataset", "digest")]
    return parts
