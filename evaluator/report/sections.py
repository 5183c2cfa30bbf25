"""Further facts about an entry's trials, from files that other steps leave in the results folder.

To show one more file, add a `Section`. The file is a JSON object: its plain values become facts of the entry, and
the list under `rows` becomes a table. A row with a `case` is shown on that trial's page too, and `badge` names the
field of a row that is said in one word.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.report.reading import Json, Results, items, mapping, read_json
from evaluator.report.words import in_words

MAX_ROWS = 400
MAX_COLUMNS = 8
MAX_ITEMS = 20
SAID_ELSEWHERE = ("schema", "dataset", "entry", "cases_sha256")
"""Of a file's own head: the entry's page has it."""


@dataclass(frozen=True)
class Section:
    """`rows` are tried in order: the first that is a list of objects is the table. `key`: that part of the file."""

    file: str
    title: str
    about: str
    rows: tuple[str, ...]
    badge: str = ""
    key: str = ""


SECTIONS = (
    Section(
        "leak_audit.json",
        "Leak audit",
        "Trajectories and submissions searched for criterion text, the dataset's addresses, hosted search and text "
        "meant for the evaluator.",
        ("trials",),
        badge="status",
    ),
    Section(
        "audit_queue.json",
        "Audit queue",
        "Verdicts that people should look at first, and why. It changes nothing by itself.",
        ("criteria",),
    ),
    Section(
        "scores.json",
        "What the credit rests on",
        "Share of the credit in each column, in percent of its points, by the kind of evidence that carries it.",
        (),
        key="evidence",
    ),
)


@dataclass(frozen=True)
class Shown:
    """One section of one entry. `rows` follow `columns`; `row_cases` name each row's case, "" where it has none."""

    title: str
    about: str
    facts: list[tuple[str, str]]
    columns: list[str]
    rows: list[list[str]]
    row_cases: list[str]
    not_shown: int
    badges: dict[str, str]
    """Case → its badge's word."""

    def of_case(self, case: str) -> list[list[tuple[str, str]]]:
        """The rows about `case`, as (column, value)."""
        found = [row for row, owner in zip(self.rows, self.row_cases, strict=True) if owner == case]
        return [list(zip(self.columns, row, strict=True)) for row in found]


def read_sections(results: Results) -> list[Shown]:
    """The sections whose file, or part of it, is there, in the order of SECTIONS."""
    shown = []
    for section in SECTIONS:
        if not (results.folder / section.file).is_file():
            continue
        notes: list[str] = []
        content = read_json(results.folder / section.file, notes)
        if section.key:
            content, notes = mapping(content.get(section.key)), []
        if content or notes:
            shown.append(_shown(section, content, notes))
    return shown


def _shown(section: Section, content: Json, notes: list[str]) -> Shown:
    told = {key: value for key, value in content.items() if key not in SAID_ELSEWHERE}
    facts = [(in_words(str(k)), _flat(v)) for k, v in told.items() if not isinstance(v, list | dict)]
    for key, value in told.items():
        facts += [(f"{in_words(str(key))}: {in_words(str(k))}", _flat(v)) for k, v in mapping(value).items()]
    facts += [("not readable", note) for note in notes]
    rows = next((items(content.get(name)) for name in section.rows if items(content.get(name))), [])
    columns = list(dict.fromkeys(str(key) for row in rows[:MAX_ROWS] for key in row))[:MAX_COLUMNS]
    return Shown(
        section.title,
        section.about,
        facts,
        [in_words(name) for name in columns],
        [[_flat(row.get(name)) for name in columns] for row in rows[:MAX_ROWS]],
        [str(row.get("case") or "") for row in rows[:MAX_ROWS]],
        max(0, len(rows) - MAX_ROWS),
        _badges(section, rows),
    )


def _badges(section: Section, rows: list[Json]) -> dict[str, str]:
    if not section.badge:
        return {}
    return {str(row["case"]): _flat(row.get(section.badge)) for row in rows if row.get("case")}


def _flat(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        objects = any(isinstance(item, dict) for item in value)
        return ("; " if objects else ", ").join(_flat(item) for item in value[:MAX_ITEMS]) + _more(len(value))
    if isinstance(value, dict):
        return ", ".join(f"{in_words(str(key))} {_flat(item)}" for key, item in value.items())
    return str(value)


def _more(count: int) -> str:
    return f" and {count - MAX_ITEMS} more" if count > MAX_ITEMS else ""
