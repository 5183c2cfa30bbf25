"""Everything a trial left behind, as texts with their places: what the agent said, did and was told, and its work."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bench.errors import DataError
from bench.journal import of_type, read_journal
from bench.strict_json import read_json
from bench.tree import file_sha256, list_tree
from evaluator.cases import Case
from evaluator.text_of_files import Piece, texts_of

Side = Literal["agent", "given", "logs", "work"]
"""Whose words: the agent's own; what it was given (prompts, results of its tools); its logs; the submission."""
_DROPPED = re.compile(rb"\n\[\xe2\x80\xa6 \d+ bytes of output dropped here \xe2\x80\xa6\]\n")
_NOT_TOLD_AGAIN = ("request.md", "changes.patch", "changes-not-shown.txt", "trajectory.json", "media")
"""Of a trial's folder: what the task gave, what the submission shows, and what is read step by step."""
_GATEWAY = ("gateway.jsonl", "gateway.json", "bodies.pack")
_EGRESS = ("egress.jsonl", "egress.json", "egress-errors.txt", "names-asked.txt", "workspace")


class Text(NamedTuple):
    """A text and where it stands, relative to the entry's folder."""

    side: Side
    place: str
    text: str


class Unread(NamedTuple):
    """What could not be looked into, and why; a trial with one cannot be called clean."""

    place: str
    reason: str


Found = Text | Unread


@dataclass(frozen=True)
class Entry:
    """The solve entry a judging's submissions come from. `trials`: case → its last record in the journal."""

    folder: Path
    lock: dict[str, Any]
    trials: dict[str, dict[str, Any]]

    @property
    def asks_a_model(self) -> bool:
        return bool(self.lock.get("model"))

    def tries(self, case: str) -> list[Path]:
        """The folders of a case's trials, the one that counts last."""
        folder = self.folder / "trials" / case
        found = [path for path in folder.iterdir() if path.name.isdecimal()] if folder.is_dir() else []
        return sorted(found, key=lambda path: int(path.name))


def find_entry(results: Path, cases: list[Case]) -> Entry | None:
    """The entry beside whose submissions (or above whose results) its trials lie; None for one made elsewhere.

    Raises DataError for a journal that cannot be trusted.
    """
    places = [(results / case.submission.folder).parent.parent for case in cases if case.submission]
    for place in dict.fromkeys([*places[:1], results.parent, results.parent.parent]):
        path = place / "lock.json"
        lock = read_json(path) if path.is_file() else None
        if isinstance(lock, dict) and lock.get("step") == "solve" and (place / "journal.jsonl").is_file():
            records = read_journal(place / "journal.jsonl").records
            return Entry(Path(os.path.normpath(place)), lock, {r["case"]: r for r in of_type(records, "trial")})
    return None


def trial_texts(entry: Entry, case: str) -> Iterator[Found]:
    """The texts of every try at a case. What is missing of the last one is told, since that one counts."""
    tries = entry.tries(case)
    if not tries:
        said = entry.trials.get(case, {}).get("outcome", "no record of it")
        yield Unread(f"trials/{case}", f"there is no trial to look into ({said})")
        return
    for folder in tries:
        yield from _try_texts(entry, folder, counts=folder == tries[-1])


def _try_texts(entry: Entry, folder: Path, *, counts: bool) -> Iterator[Found]:
    place = folder.relative_to(entry.folder).as_posix()
    told = folder / "trajectory.json"
    if told.is_file():
        yield from _trajectory(told, f"{place}/trajectory.json")
    elif entry.asks_a_model and counts:
        yield Unread(f"{place}/trajectory.json", "there is no trajectory of what the agent did")
    elif not entry.asks_a_model and counts:
        output = folder / "stdout.log"
        if not output.is_file():
            yield Unread(
                f"{place}/stdout.log", "the agent's output, all there is of an agent without a model, is missing"
            )
        elif _DROPPED.search(output.read_bytes()):
            yield Unread(f"{place}/stdout.log", "a part of the agent's output was not kept")
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        top = name.partition("/")[0]
        if top not in (*_NOT_TOLD_AGAIN, *_GATEWAY, *_EGRESS) and path.is_file() and not path.is_symlink():
            side: Side = "logs" if entry.asks_a_model else "agent"
            yield from _file(side, f"{place}/{name}", path, unread=False)
    if (folder / "workspace").is_dir():
        yield from _tree(folder / "workspace", f"{place}/workspace", {})


def submission_texts(folder: Path, start: Path, place: str) -> Iterator[Found]:
    """The files of a submission, and their names, but for those that the start has with the same content."""
    known = {e["path"]: e.get("sha256") for e in list_tree(start) if "path" in e} if start.is_dir() else {}
    yield from _tree(folder, place, known)


def given_texts(results: Path, case: Case) -> Iterator[str]:
    """What the task gives its solver in words: the request, digests of attachments, the starting application."""
    yield case.request
    folders = [results / one.digest for one in case.attachments if one.digest]
    for folder in [*folders, results / case.project]:
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(folder).as_posix()
                yield from (piece.text for piece in texts_of(path) if isinstance(piece, Piece))


def _tree(root: Path, place: str, known: dict[str, Any]) -> Iterator[Found]:
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            yield Text("work", f"{place}/{name}", f"{name} -> {path.readlink()}")
        elif path.is_file() and (name not in known or known[name] != file_sha256(path)):
            yield Text("work", f"{place}/{name}, its name", name)
            yield from _file("work", f"{place}/{name}", path, unread=True)


def _file(side: Side, place: str, path: Path, *, unread: bool) -> Iterator[Found]:
    for found in texts_of(path):
        if isinstance(found, Piece):
            where = "" if found.where == "text" else f", {found.where}"
            yield Text(side, place + where, found.text)
        elif unread:
            yield Unread(f"{place}, {found.where}", found.reason)


def _trajectory(path: Path, place: str) -> Iterator[Found]:
    try:
        steps = read_json(path)["steps"]
        yield from (text for step in steps for text in _step(step, f"{place}, step {step['step_id']}"))
    except (DataError, KeyError, TypeError, AttributeError, ValueError, OSError) as error:
        yield Unread(place, f"it cannot be read as a trajectory ({error.__class__.__name__})")


def _step(step: dict[str, Any], place: str) -> Iterator[Text]:
    own: Side = "agent" if step["source"] == "agent" else "given"
    yield from _content(own, f"{place}, {step['source']} message", step.get("message"))
    yield from _content("agent", f"{place}, reasoning", step.get("reasoning_content"))
    for number, call in enumerate(step.get("tool_calls") or (), start=1):
        texts = list(_strings(call.get("arguments")))
        yield Text("agent", f"{place}, tool call {number}", "\n".join([str(call.get("function_name")), *texts]))
    observation = step.get("observation") or {}
    for number, result in enumerate(observation.get("results") or (), start=1):
        yield from _content("given", f"{place}, tool result {number}", result.get("content"))


def _content(side: Side, place: str, content: Any) -> Iterator[Text]:
    parts = content if isinstance(content, list) else [{"text": content}]
    if said := "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str)):
        yield Text(side, place, said)


def _strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value, names of members too; a text that is JSON itself stands as it is."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
    elif value is not None:
        yield json.dumps(value)
