"""Some of a bundle's verdicts replayed: drawn by a seed, in a scratch folder, the bundle itself left as it is."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from bench.errors import CdbError, InfraError, UsageError
from bench.layout import CASES, PROJECT
from evaluator.bundle.check_result import Result
from evaluator.bundle.findings import Findings
from evaluator.bundle.layout import RESULTS, START
from evaluator.cases import Case, moved, write_cases


class Replayed(NamedTuple):
    """One verdict replayed. `came`: holds, fails (a fault), or untold: this machine could not say."""

    results: str
    case: str
    criterion_index: int
    came: Literal["holds", "fails", "untold"]
    reason: str = ""

    def line(self) -> str:
        said = {"holds": "holds", "fails": "does NOT hold", "untold": "could not be told"}[self.came]
        return f"replay {self.results} {self.case} criterion {self.criterion_index}: {said} {self.reason}".rstrip()


def replay_some(
    found: Findings,
    results: list[Result],
    count: int,
    seed: int,
    dataset: Path | None,
    *,
    rebuild: bool,
    frozen: Path | None,
    progress: Callable[[str], None],
) -> list[Replayed]:
    """Replay up to `count` verdicts that stand on witnesses. Those that do not hold are faults, too."""
    by_name = {result.name: result for result in results}
    standing = sorted(
        (result.name, *key)
        for result in results
        for key, record in result.last.items()
        if _stands(record.verdict, record.sub_requirements)
    )
    chosen = random.Random(seed).sample(standing, min(count, len(standing)))
    replayed = []
    for number, (name, case, index) in enumerate(chosen, start=1):
        progress(f"replaying {number} of {len(chosen)}: {name} {case} criterion {index}")
        result = by_name[name]
        with tempfile.TemporaryDirectory(prefix="cdb-verify-replay-") as room:
            scratch = _scratch(result, case, Path(room) / name, _start(found.folder, case, dataset), rebuild)
            one = _replay(scratch, name, case, index, frozen)
        replayed.append(one)
        if one.came == "fails":
            found.fault(f"{RESULTS}/{name}/journal.jsonl", f"{case} criterion {index} does not replay: {one.reason}")
    return replayed


def _stands(verdict: str | None, subs: list[object] | object) -> bool:
    return verdict is not None and bool(subs)


def _start(bundle: Path, case: str, dataset: Path | None) -> Path:
    places = [bundle / START / case / "project", *([dataset / CASES / case / PROJECT] if dataset else [])]
    for place in places:
        if place.is_dir():
            return place
    raise UsageError(
        f"the bundle does not hold the start application of {case}; pass the extracted release with --dataset"
    )


def _scratch(result: Result, case: str, scratch: Path, start: Path, rebuild: bool) -> Path:
    """A results folder that a replay may write its locks into: journal, lock, evidence and this case's build."""
    scratch.mkdir()
    for name in ("lock.json", "journal.jsonl"):
        shutil.copyfile(result.folder / name, scratch / name)
    if (result.folder / "evidence").is_dir():
        (scratch / "evidence").symlink_to(result.folder / "evidence")
    built = result.folder / "built" / case
    if built.is_dir() and not rebuild:
        shutil.copytree(built, scratch / "built" / case, symlinks=True)
    cases = moved(result.cases, result.folder, scratch)

    def with_start(one: Case) -> Case:
        return one.model_copy(update={"project": str(start.resolve())}) if one.case == case else one

    write_cases(cases.model_copy(update={"cases": [with_start(one) for one in cases.cases]}), scratch / "cases.json")
    return scratch


def _replay(scratch: Path, name: str, case: str, index: int, frozen: Path | None) -> Replayed:
    from evaluator.rerun import rerun

    try:
        again = rerun(scratch, case, index, frozen)
    except InfraError as error:
        return Replayed(name, case, index, "untold", str(error))
    except UsageError:
        raise
    except CdbError as error:
        return Replayed(name, case, index, "fails", str(error))
    if again.now.verdict is None and again.now.outcome != "ok":
        return Replayed(name, case, index, "untold", again.now.reason)
    if not again.holds:
        return Replayed(name, case, index, "fails", f"recorded {again.recorded.verdict}, now {again.now.verdict}")
    return Replayed(name, case, index, "holds")
