"""A Harbor job's artifacts as submissions. Everything in a job's folder was written by an agent or near one, so it is
hostile: read by name, size and kind, links never followed, trees taken over by the rules of a snapshot."""

from __future__ import annotations

import os
import re
import shutil
import stat
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from bench.atomic import write_json
from bench.errors import DataError, UsageError
from bench.redact import Redactor
from bench.strict_json import parse_json
from bench.submission import MADE_ELSEWHERE, SubmissionManifest, describe_entries, seal
from bench.task import Task, open_dataset
from evaluator.exports.harbor_tasks import ARTIFACT, WORKSPACE
from evaluator.made_elsewhere import copy_tree
from sandboxes.sandbox import TreeTooLarge
from sandboxes.snapshot import manifest_fields, snapshot

SCHEMA = "cdb.harbor-import/1"
_MOST_JSON_BYTES = 64 * 1024 * 1024

Json = dict[str, Any]


@dataclass(frozen=True)
class Imported:
    """One Harbor trial: the submissions folder and digest it became, or why it became none."""

    trial: str
    case: str
    entry: str
    digest: str | None = None
    reason: str = ""


def import_job(job: Path, dataset_root: Path, out: Path, *, source: str = WORKSPACE) -> list[Imported]:
    """Seal what each trial of `job` left as a submission below `out/AGENT__MODEL__ATTEMPT/`, with its `entry.json`.

    `source`: the folder in Harbor's container that held the application. Trials of the same agent, model and task are
    attempts, in the order of their names. Raises UsageError when `job` is no job or `out` is not empty, DataError for
    a trial's record that cannot be read.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty; choose another --out")
    tasks = {task.case_id: task for task in open_dataset(dataset_root).tasks}
    trials = _trials(job)
    names = {re.sub(r"[^A-Za-z0-9._-]", "-", case).lstrip("."): case for case in tasks}
    found: list[Imported] = []
    attempts: dict[tuple[str, str, str], int] = {}
    for folder, record in trials:
        case = names.get(_short(record.get("task_name")))
        agent, model = _agent(record)
        key = (agent, model or "", case or "")
        attempts[key] = attempts.get(key, 0) + 1
        entry = f"{_slug(agent)}__{_slug(model or 'none')}__{attempts[key]}"
        if case is None:
            told = f"its task {record.get('task_name')!r:.80} is none of this dataset"
            found.append(Imported(folder.name, "", entry, reason=told))
            continue
        made = _take(folder, record, tasks[case], out / entry, agent, model, attempts[key], source)
        found.append(Imported(folder.name, case, entry, *made))
        if made[0] is None:
            continue
        who = {"agent": agent, "model": model, "harness": "harbor", "attempt": attempts[key]}
        write_json(out / entry / "entry.json", {**who, "notes": f"Harbor job {job.resolve().name}"})
    write_json(
        out / "import.json", {"schema": SCHEMA, "job": job.resolve().name, "trials": [asdict(f) for f in found]}
    )
    return found


def _trials(job: Path) -> list[tuple[Path, Json]]:
    if not job.is_dir():
        raise UsageError(f"{job} is no folder; pass a Harbor job's, which holds a folder for each trial")
    folders = [path for path in sorted(job.iterdir()) if not path.is_symlink() and (path / "result.json").is_file()]
    found = [(path, _json(path / "result.json")) for path in folders]
    trials = [(path, record) for path, record in found if "task_name" in record]
    if not trials:
        raise UsageError(f"{job} holds no trial of Harbor's (a folder with result.json); pass the job's own folder")
    return trials


def _json(path: Path) -> Json:
    content = parse_json(_plain_bytes(path), str(path))
    if not isinstance(content, dict):
        raise DataError(f"{path} is no JSON object; is it Harbor's?")
    return content


def _plain_bytes(path: Path) -> bytes:
    """A small regular file's content. Raises DataError for a link, a special file, or one that is too large."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{path} is no plain file; remove that trial and import again")
    if status.st_size > _MOST_JSON_BYTES:
        raise DataError(f"{path} has {status.st_size} bytes, more than any record of Harbor's; remove that trial")
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read(_MOST_JSON_BYTES)


def _take(
    trial: Path, record: Json, task: Task, submissions: Path, agent: str, model: str | None, attempt: int, source: str
) -> tuple[str | None, str]:
    """Digest of the sealed submission, or None and why there is none."""
    tree, why = _artifact(trial, source)
    if tree is None:
        return None, why
    submissions.mkdir(parents=True, exist_ok=True)
    staged = submissions / f".{task.case_id}"
    try:
        report = snapshot(partial(copy_tree, tree, root=source), staged, task.start_entries)
    except TreeTooLarge as error:
        shutil.rmtree(staged, ignore_errors=True)
        return None, f"what it left is too large: {error}"
    if not report.entries:
        shutil.rmtree(staged, ignore_errors=True)
        return None, "what it left is empty"
    failed = _exception(record)
    manifest = SubmissionManifest(
        case=task.case_id,
        agent=agent,
        model=model,
        attempt=attempt,
        outcome=MADE_ELSEWHERE,
        reason=failed,
        flags=["harbor_exception"] if failed else [],
        started_at=_time(record, "started_at"),
        duration_s=_duration_s(record),
        usage=_usage(record),
        **manifest_fields(report),
        **describe_entries(report.entries, task.start_entries),
    )
    seal(staged, submissions, manifest)
    return manifest.digest, failed


def _artifact(trial: Path, source: str) -> tuple[Path | None, str]:
    """Where a trial's artifacts hold the folder `source`, by their manifest; without one, where Harbor puts it."""
    artifacts = trial / "artifacts"
    listed = artifacts / "manifest.json"
    place = ARTIFACT
    if listed.is_file() or listed.is_symlink():
        entries = parse_json(_plain_bytes(listed), str(listed))
        own = [
            e for e in (entries if isinstance(entries, list) else [])
            if isinstance(e, dict) and str(e.get("source")).rstrip("/") == source.rstrip("/")
        ]  # fmt: skip
        if not own:
            return None, f"its artifacts hold no {source}"
        if own[0].get("status") != "ok" or own[0].get("type") != "directory":
            return None, f"{source} was not collected ({own[0].get('type')}, {own[0].get('status')})"
        place = str(own[0].get("destination") or source)
    parts = [part for part in PurePosixPath(place).parts if part != "/"]
    if parts[:1] == ["artifacts"]:  # some versions name the place from the trial's folder
        parts = parts[1:]
    if ".." in parts or not parts or "\0" in place:
        raise DataError(f"{listed} puts {source} at {place!r}, out of the artifacts; remove that trial")
    here = artifacts
    for part in [None, *parts]:
        here = here / part if part else here
        if here.is_symlink() or not here.is_dir():
            return None, f"{here.relative_to(trial)} is {'a link' if here.is_symlink() else 'no folder'}"
    return here, ""


def _agent(record: Json) -> tuple[str, str | None]:
    info = _object(record, "agent_info")
    model = _object(info, "model_info")
    name = model.get("name")
    provider = f"{model['provider']}/" if model.get("provider") else ""
    return str(info.get("name") or "unknown")[:200], f"{provider}{name}"[:200] if name else None


def _exception(record: Json) -> str:
    """What Harbor says went wrong; its text may hold anything, so secrets are taken out."""
    error = _object(record, "exception_info")
    if not error:
        return ""
    said = f"{error.get('exception_type')}: {error.get('exception_message')}"
    return Redactor().text(said)[:2000]


def _usage(record: Json) -> Json:
    told = _object(record, "agent_result")
    names = {"n_input_tokens": "input", "n_cache_tokens": "cache_read", "n_output_tokens": "output"}
    tokens = {own: int(told[name]) for name, own in names.items() if _is_number(told.get(name))}
    if "input" in tokens:  # Harbor counts cached tokens in
        tokens["input"] = max(0, tokens["input"] - tokens.get("cache_read", 0))
    cost = told.get("cost_usd")
    return {"tokens": tokens, "cost_usd": cost if _is_number(cost) else None} if told else {}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _time(record: Json, name: str) -> str | None:
    value = _object(record, "agent_execution").get(name)
    return value if isinstance(value, str) and len(value) < 40 else None


def _duration_s(record: Json) -> float | None:
    began, ended = _time(record, "started_at"), _time(record, "finished_at")
    try:
        return (
            (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
            if began and ended
            else None
        )
    except (ValueError, TypeError):  # no time at all, or one with and one without its zone
        return None


def _object(record: Json, name: str) -> Json:
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def _short(name: object) -> str:
    return name.rsplit("/", 1)[-1] if isinstance(name, str) else ""


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:80] or "unknown"
