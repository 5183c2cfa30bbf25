"""`cdb audit leaks`: did a trial see the rubric, fetch the dataset or speak to its judge? By its records, afterwards.

Each trial is CLEAN, FLAGGED (something was found; a person has to look, it is no proof of cheating) or INCONCLUSIVE
(nothing was found and not everything could be looked into, such as a trial without a trajectory). What was found is
named by its place and kind, never quoted: the file may be published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bench.atomic import write_json
from bench.errors import UsageError
from bench.strict_json import read_json
from bench.tree import file_sha256
from evaluator.audit.leak_words import Secrets, Sign
from evaluator.audit.trial_network import dataset_hosts, hosted_tools
from evaluator.audit.trial_texts import Entry, Text, Unread, find_entry, given_texts, submission_texts, trial_texts
from evaluator.cases import Case, Cases, read_cases
from evaluator.leaks import is_named_like_a_rubric

FILE = "leak_audit.json"
SCHEMA = "cdb.leak_audit/1"
MOST_FINDINGS = 50
"""Of one trial are listed; all are counted."""
NOT_LOOKED_INTO = (
    "pictures and speech, in what the model saw and in submissions",
    "what a provider's own tools read for the model (that they ran is found)",
)
Status = Literal["CLEAN", "FLAGGED", "INCONCLUSIVE"]
STATUSES: tuple[Status, ...] = ("CLEAN", "FLAGGED", "INCONCLUSIVE")
Progress = Callable[[str], None]


class Finding(NamedTuple):
    """One sign of a leak at one place, relative to the entry's folder."""

    kind: str
    place: str
    what: str


class TrialAudit(NamedTuple):
    """What is known of one trial. `given`: criteria that the task itself tells its solver, not looked for."""

    case: str
    findings: list[Finding]
    unread: list[Unread]
    texts: int
    given: list[int]

    @property
    def status(self) -> Status:
        if self.findings:
            return "FLAGGED"
        return "INCONCLUSIVE" if self.unread else "CLEAN"

    def as_json(self) -> dict[str, Any]:
        return {
            "case": self.case, "status": self.status, "findings_in_all": len(self.findings),
            "findings": [finding._asdict() for finding in self.findings[:MOST_FINDINGS]],
            "not_looked_into": [part._asdict() for part in self.unread[:MOST_FINDINGS]],
            "texts": self.texts, "given": self.given,
        }  # fmt: skip


def audit_leaks(results: Path, progress: Progress = lambda _line: None) -> dict[str, Any]:
    """Look through every trial whose submissions were judged into `results`, and write `leak_audit.json` there.

    Same records, same bytes. Raises UsageError for no results folder, DataError for a journal that cannot be trusted.
    """
    if not (results / "cases.json").is_file():
        raise UsageError(f"{results} is no results folder (cases.json); give what `cdb judge` wrote")
    cases = read_cases(results / "cases.json")
    secrets = Secrets({c.case: [(k.criterion_index, k.criterion) for k in c.criteria] for c in cases.cases})
    entry = find_entry(results, cases.cases)
    trials = []
    for case in cases.cases:
        progress(f"looking through {case.case}")
        trials.append(_trial(results, case, entry, secrets))
    found = _told(cases, results, trials, secrets)
    write_json(results / FILE, found)
    return found


def read_leak_audit(results: Path) -> dict[str, Any] | None:
    """`leak_audit.json` of a results folder as it is; None where there is none, or it was made for other cases.

    Raises DataError for a file that is no JSON.
    """
    path = results / FILE
    if not path.is_file():
        return None
    found: dict[str, Any] = read_json(path)
    return found if found.get("cases_sha256") == f"sha256:{file_sha256(results / 'cases.json')}" else None


def lines(found: dict[str, Any]) -> list[str]:
    """What `cdb audit leaks` prints without --json."""
    said = []
    for trial in found["trials"]:
        if trial["status"] == "CLEAN":
            continue
        said.append(f"{trial['status']} {trial['case']}")
        said += [f"  {f['kind']}: {f['place']}: {f['what']}" for f in trial["findings"]]
        if more := trial["findings_in_all"] - len(trial["findings"]):
            said.append(f"  and {more} more")
        said += [f"  not looked into: {part['place']}: {part['reason']}" for part in trial["not_looked_into"]]
    return [*said, summary(found)]


def summary(found: dict[str, Any]) -> str:
    """One line: how many trials are what, and kinds of findings."""
    counted = ", ".join(f"{found['statuses'][status]} {status}" for status in STATUSES)
    kinds = ", ".join(f"{kind} {n}" for kind, n in found["kinds"].items())
    return f"leak audit of {len(found['trials'])} trials: {counted}" + (
        f" (trials by kind: {kinds})" if kinds else ""
    )


def _told(cases: Cases, results: Path, trials: list[TrialAudit], secrets: Secrets) -> dict[str, Any]:
    kinds = Counter(kind for trial in trials for kind in {finding.kind for finding in trial.findings})
    return {
        "schema": SCHEMA,
        "dataset": cases.dataset,
        "entry": cases.entry,
        "cases_sha256": f"sha256:{file_sha256(results / 'cases.json')}",
        "statuses": {status: sum(trial.status == status for trial in trials) for status in STATUSES},
        "kinds": dict(sorted(kinds.items())),
        "criteria": sum(len(case.criteria) for case in cases.cases),
        "too_short": [{"case": case, "criterion_index": index} for case, index in secrets.too_short],
        "trials": [trial.as_json() for trial in trials],
        "limits": list(NOT_LOOKED_INTO),
    }


def _trial(results: Path, case: Case, entry: Entry | None, secrets: Secrets) -> TrialAudit:
    for text in given_texts(results, case):
        secrets.give(case.case, text)
    findings: dict[Finding, None] = {}
    unread: list[Unread] = []
    texts = 0
    for found in _everything(results, case, entry):
        if isinstance(found, Unread):
            unread.append(found)
        elif isinstance(found, Finding):
            findings[found] = None
        else:
            texts += 1
            findings.update((finding, None) for finding in _in_text(case.case, found, secrets))
    return TrialAudit(case.case, list(findings), unread, texts, secrets.given(case.case))


def _everything(results: Path, case: Case, entry: Entry | None) -> Iterator[Text | Unread | Finding]:
    if entry is None:
        yield Unread("trials", "the submissions were made elsewhere: there is no record of their trials")
    else:
        yield from trial_texts(entry, case.case)
        networked = entry.lock.get("conditions", {}).get("egress", "none") != "none"
        tries = entry.tries(case.case)
        for folder in tries:
            place, last = folder.relative_to(entry.folder).as_posix(), folder == tries[-1]
            yield from _seen(hosted_tools(folder, place, required=entry.asks_a_model and last))
            yield from _seen(dataset_hosts(folder, place, required=networked and last))
    if case.submission:
        folder = results / case.submission.folder
        if folder.is_dir():
            yield from submission_texts(folder, results / case.project, f"submissions/{case.case}")
        else:
            yield Unread(f"submissions/{case.case}", "the submission is not where cases.json says")


def _seen(found: Iterator[tuple[str, Sign] | Unread]) -> Iterator[Unread | Finding]:
    for one in found:
        yield one if isinstance(one, Unread) else Finding(one[1].kind, one[0], one[1].what)


def _in_text(case: str, found: Text, secrets: Secrets) -> Iterator[Finding]:
    for sign in secrets.criteria_in(case, found.text):
        yield Finding(sign.kind, found.place, sign.what)
    for sign in secrets.names_in(case, found.text):
        if sign.kind != "dataset_address" or found.side in ("agent", "work"):
            yield Finding(sign.kind, found.place, sign.what)
    if found.side != "work":
        return
    if found.place.endswith(", its name") and is_named_like_a_rubric(found.text):
        yield Finding("rubric_name", found.place, "named like a rubric")
    if spoken := secrets.directed_lines(case, found.text):
        where = ", ".join(map(str, spoken[:5])) + (" …" if len(spoken) > 5 else "")
        yield Finding("evaluator_directed", found.place, f"line {where} speaks to whoever evaluates")
