"""`cdb verify`: everything in a bundle against everything else in it, and some verdicts replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.task import open_dataset
from bench.tree import digest, list_tree
from evaluator.bundle.check_entry import check_entries
from evaluator.bundle.check_result import Result, check_result
from evaluator.bundle.findings import Fault, Findings
from evaluator.bundle.layout import MADE_BY, RESULTS, START
from evaluator.bundle.opened import check_members, opened
from evaluator.bundle.replays import Replayed, replay_some
from evaluator.rubric import read_rubrics

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Verified:
    """What a check came to. `digest`: of everything in the bundle; compare it with the one that was published."""

    digest: str
    results: list[str]
    criteria: int
    submissions: int
    faults: list[Fault]
    notes: list[str]
    replayed: list[Replayed]

    @property
    def untold(self) -> list[Replayed]:
        """Replays that this machine could not carry out."""
        return [one for one in self.replayed if one.came == "untold"]

    def as_json(self) -> dict[str, Any]:
        return {
            **{key: value for key, value in vars(self).items() if key not in ("faults", "replayed")},
            "faults": [fault._asdict() for fault in self.faults],
            "replays": [one._asdict() for one in self.replayed],
        }

    def lines(self) -> list[str]:
        said = [one.line() for one in self.replayed]
        said += [f"note: {note}" for note in self.notes]
        said += [fault.line() for fault in self.faults]
        counts = f"{len(self.results)} results, {self.criteria} criteria, {self.submissions} sealed submissions"
        verdict = f"{len(self.faults)} faults" if self.faults else "no fault found"
        replayed = f", {len(self.replayed)} replayed" if self.replayed else ""
        return [*said, f"{counts}{replayed}: {verdict}", f"digest {self.digest}"]


def verify_bundle(
    bundle: Path,
    *,
    replays: int = 0,
    seed: int = 0,
    dataset: Path | None = None,
    digest_wanted: str | None = None,
    rebuild: bool = False,
    frozen: Path | None = None,
    progress: Progress = lambda _line: None,
) -> Verified:
    """Check a bundle, packed or unpacked; nothing is written into it.

    `replays`: how many decided criteria to replay, drawn by `seed`; 0 needs no engine. `dataset`: an extracted root,
    whose start applications stand in for those that are not in the bundle, and which is compared. `rebuild`: build
    submissions anew for a replay instead of taking the bundle's builds. Raises DataError for a hostile archive,
    UsageError for no bundle, and where replays are asked for that have no start application.
    """
    with opened(bundle) as folder:
        found = Findings(folder)
        card, whole = check_members(found, digest_wanted)
        if card and card.made_by != MADE_BY:
            found.notes.append(
                f"made by {card.made_by}, checked by {MADE_BY}: where rules changed, verdicts may differ"
            )
        solved = check_entries(found)
        held = folder / RESULTS
        names = sorted(path.name for path in held.iterdir() if path.is_dir()) if held.is_dir() else []
        for told in card.results if card else ():
            if told.name not in names:
                found.fault(f"{RESULTS}/{told.name}", "bundle.json names it and it is not there")
        results = [result for name in names if (result := check_result(found, name, card, solved))]
        for result in results:
            _check_starts(found, result)
            if dataset:
                _check_dataset(found, result, dataset)
        if not dataset:
            found.notes.append("requests and criteria were not compared with the dataset's: pass --dataset")
        replayed = (
            replay_some(found, results, replays, seed, dataset, rebuild=rebuild, frozen=frozen, progress=progress)
            if replays
            else []
        )
        return Verified(
            digest=whole,
            results=names,
            criteria=sum(len(result.last) for result in results),
            submissions=sum(len(own.sealed) for own in solved.values()),
            faults=sorted(found.faults),
            notes=found.notes,
            replayed=replayed,
        )


def _check_starts(found: Findings, result: Result) -> None:
    for case in result.cases.cases:
        project = found.folder / START / case.case / "project"
        if project.is_dir() and digest(list_tree(project)) != case.start_digest:
            found.fault(f"{START}/{case.case}/project", "it is not the start application that was judged against")


def _check_dataset(found: Findings, result: Result, root: Path) -> None:
    """Requests and start applications by the dataset's digest, criteria word for word where the root has rubrics."""
    place = f"{RESULTS}/{result.name}/cases.json"
    wanted = [case.case for case in result.cases.cases]
    with found.at(place):
        dataset = open_dataset(root, wanted)
        if dataset.digest != result.cases.dataset.get("digest"):
            found.fault(
                place, f"its dataset is {result.cases.dataset.get('digest')}, {root.name} is {dataset.digest}"
            )
        if dataset.scope != result.cases.scope:
            found.fault(
                place, f"its scope is {result.cases.scope.get('label')!r}, in {root.name} {dataset.scope['label']!r}"
            )
        if not all((task.folder / "rubric.json").is_file() for task in dataset.tasks):
            found.notes.append(f"{root.name} has no rubrics, so criteria were not compared with the dataset's")
            return
        damaged: dict[str, str] = {}
        rubrics = read_rubrics(dataset, damaged)
        for case in result.cases.cases:
            told = [(c.criterion_index, c.rubric_id, c.criterion) for c in case.criteria]
            if case.case in rubrics and told != [
                (c.criterion_index, c.rubric_id, c.text) for c in rubrics[case.case]
            ]:
                found.fault(place, f"the criteria of {case.case} are not those of the dataset")
