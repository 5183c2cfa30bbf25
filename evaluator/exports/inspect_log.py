"""Inspect logs (`.eval`), one for each entry, written without inspect_ai.

A log is a zip (DEFLATE) of `header.json`, `summaries.json` and `samples/ID_epoch_N.json`, in the shapes of
inspect_ai's `EvalLog`, `EvalSampleSummary` and `EvalSample` (log format 2). A task is a sample; its criteria are its
targets, so the log belongs to the evaluator's side. Each sample has the scores `strict`, `graded` and `full` (0 to 1)
and `criteria`, whose value is the verdict of each. What is unscored has no score. Same results, same bytes.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

from bench import __version__
from bench.errors import DataError
from bench.journal import JournalStream
from bench.redact import Redactor
from bench.strict_json import read_json
from evaluator.cases import Case
from evaluator.exports.entry import Entry, read_entries
from evaluator.exports.inspect_messages import messages_of
from evaluator.fixed_archive import LEVEL, ZIP_DATE
from evaluator.metrics import METRICS

Json = dict[str, Any]
LOG_VERSION = 2
_VERBATIM = ("id", "input", "target")
"""The dataset's own texts; from all others secrets are taken out once more."""
_LETTERS = {"PASS": "C", "PARTIAL": "P", "FAIL": "I"}
"""Inspect's own words for what is right, partly right and wrong."""


def write_logs(results: list[Path], out: Path) -> list[Path]:
    """Write `out/NAME.eval` for each results folder; gives the files."""
    return [write_log(entry, out / f"{entry.name}.eval") for entry in read_entries(results)]


def write_log(entry: Entry, out: Path) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    summaries = []
    partial = out.with_name(f".{out.name}.part")
    with zipfile.ZipFile(partial, "w") as archive:
        for case, row in zip(entry.cases.cases, entry.rows, strict=True):
            sample = _sample(entry, case, row)
            summaries.append(_summary(sample))
            _put(archive, f"samples/{case.case}_epoch_1.json", sample)
        _put(archive, "summaries.json", summaries)
        _put(archive, "header.json", _header(entry))
    partial.replace(out)
    return out


def _put(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    info = zipfile.ZipInfo(name, ZIP_DATE)
    info.create_system, info.external_attr = 3, 0o100644 << 16
    archive.writestr(info, text.encode("utf-8", "backslashreplace"), zipfile.ZIP_DEFLATED, LEVEL)


def _header(entry: Entry) -> Json:
    who, dataset = entry.cases.entry, entry.cases.dataset
    began, ended = _times(entry)
    return {
        "version": LOG_VERSION,
        "status": "cancelled" if entry.scores["partial"] else "success",
        "eval": {
            "eval_id": _id(entry, "eval"),
            "run_id": _id(entry, "run"),
            "task_id": _id(entry, "task"),
            "created": began,
            "task": str(dataset.get("name") or "dataset"),
            "task_version": 0,
            "task_args": {},
            "dataset": {
                "name": dataset.get("name"),
                "samples": len(entry.cases.cases),
                "sample_ids": [case.case for case in entry.cases.cases],
                "shuffled": False,
            },
            "model": str(who.get("model") or "none/none"),
            "solver": str(who.get("agent") or "unknown"),
            "config": {"epochs": 1},
            "packages": {"codesign-bench": __version__},
            "tags": [] if who.get("reportable") else ["not reportable"],
            "metadata": {"entry": who, "scope": entry.scores["scope"], "settings": entry.scores["settings"]},
            "viewer": {"trust_content": False},
        },
        "plan": {"name": "plan", "steps": []},
        "results": _results(entry),
        "stats": {"started_at": began, "completed_at": ended, "model_usage": {}},
    }


def _results(entry: Entry) -> Json:
    """The headline's column first in each score: the viewer shows that one in its list of logs."""
    coverage, columns = entry.scores["coverage"], entry.scores["columns"]
    names = sorted(columns, key=lambda name: name != entry.scores["headline"])
    scores = []
    for metric in METRICS:
        told = {name: columns[name][metric]["mean"] for name in names}
        metrics = {
            name: {"name": name, "value": mean / 100, "params": {}, "options": {}}
            for name, mean in told.items()
            if mean is not None
        }
        scores.append(
            {
                "name": metric,
                "scorer": metric,
                "params": {},
                "metrics": metrics,
                "scored_samples": coverage["tasks_scored"],
                "unscored_samples": coverage["tasks"] - coverage["tasks_scored"],
                "metadata": {"interval_95_percent": {name: columns[name][metric] for name in columns}},
            }
        )
    return {
        "total_samples": coverage["tasks"],
        "completed_samples": coverage["tasks_scored"],
        "scores": scores,
        "metadata": {"label": entry.scores["label"], "headline": entry.scores["headline"]},
    }


def _sample(entry: Entry, case: Case, row: Json) -> Json:
    trial = entry.trials.get(case.case, {})
    messages, note = _messages(entry, case, trial)
    sample: Json = {
        "id": case.case,
        "epoch": 1,
        "uuid": _id(entry, case.case),
        "input": case.request,
        "target": [text.criterion for text in case.criteria],
        "messages": messages,
        "output": {"model": str(entry.cases.entry.get("model") or "none/none"), "choices": []},
        "scores": _scores(entry, case, row),
        "metadata": {
            "attachment": case.attachment,
            "outcome": row["outcome"],
            "trial": row["trial"],
            "submission": case.submission.model_dump() if case.submission else None,
            "trajectory": note,
        },
        "store": {},
        "events": [],
        "model_usage": {},
    }
    if trial.get("duration_s") is not None:
        sample["total_time"] = trial["duration_s"]
    if row["unscored"]:
        why = f"{row['outcome']}: {row.get('reason', '')}; {row['unscored']} criteria are unscored"
        sample["error"] = {"message": why, "traceback": "", "traceback_ansi": ""}
    redactor = Redactor()
    return {key: value if key in _VERBATIM else redactor.value(value) for key, value in sample.items()}


def _scores(entry: Entry, case: Case, row: Json) -> Json:
    verdicts = {
        text.criterion_index: entry.verdict(case.case, text.criterion_index, "witnessed") for text in case.criteria
    }
    told = [
        {
            "criterion_index": text.criterion_index,
            "criterion": text.criterion,
            "verdict": verdicts[text.criterion_index],
            **_told(entry.records.get((case.case, text.criterion_index), {})),
        }
        for text in case.criteria
    ]
    scores: Json = {
        metric: {"value": row[metric] / 100, "answer": row["outcome"], "metadata": {"column": "witnessed"}}
        for metric in METRICS
        if row[metric] is not None
    }
    scores["criteria"] = {
        "value": {f"criterion {index}": _LETTERS.get(str(verdict), "N") for index, verdict in verdicts.items()},
        "answer": " ".join(str(verdict or "unscored") for verdict in verdicts.values()),
        "explanation": "\n".join(
            f"{one['criterion_index']}. {one['verdict'] or 'unscored'}: {one['criterion']}" for one in told
        ),
        "metadata": {"criteria": told},
    }
    return scores


def _told(record: Json) -> Json:
    """What of a criterion's record explains its verdict; its replays stay in the bundle."""
    subs = [
        {
            key: sub.get(key)
            for key in ("id", "text", "core", "reason", "witness", "proposed", "card", "witnessed", "lowered_by")
        }
        | {"replays": [f"{run['purpose']} on {run['app']}: {run['outcome']}" for run in sub.get("replays") or []]}
        for sub in record.get("sub_requirements") or []
    ]
    return {key: record.get(key) for key in ("outcome", "reason", "columns", "flags")} | {"sub_requirements": subs}


def _messages(entry: Entry, case: Case, trial: Json) -> tuple[list[Json], str]:
    """The conversation, from the trial's trajectory, and what is to be said of it."""
    solved = entry.solve_entry
    path = solved / str(trial.get("logs") or "") / "trajectory.json" if solved and trial else None
    request = [{"role": "user", "content": case.request}]
    if path is None or not path.is_file():
        return request, "no trajectory was kept"
    trajectory = read_json(path)
    if not isinstance(trajectory, dict) or not isinstance(trajectory.get("steps"), list):
        raise DataError(f"{path} is no ATIF trajectory (no `steps`); move it away to export without it")
    return messages_of(trajectory), str(trajectory.get("schema_version") or "unknown format")


def _summary(sample: Json) -> Json:
    kept = ("id", "epoch", "uuid", "input", "target", "metadata", "total_time")
    summary: Json = {key: sample[key] for key in kept if key in sample}
    summary["scores"] = {name: {"value": score["value"]} for name, score in sample["scores"].items()}
    summary |= {"completed": True, "message_count": len(sample["messages"])}
    return summary | ({"error": sample["error"]["message"]} if "error" in sample else {})


def _times(entry: Entry) -> tuple[str, str]:
    """First and last time of the judging's journal; a foreign one tells none, so the epoch stands for it."""
    stamps: list[str] = []
    if entry.records:
        stamps = [str(record["at"]) for record in JournalStream(entry.folder / "journal.jsonl") if "at" in record]
    return (stamps[0], stamps[-1]) if stamps else ("1970-01-01T00:00:00+00:00",) * 2


def _id(entry: Entry, what: str) -> str:
    """22 characters, unique to this result and what it names, and the same at the next export."""
    told = json.dumps([entry.name, entry.lock, entry.cases.entry, what], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:22]
