"""`cdb plan`: criterion plans made once per dataset, by a model or by hand, blind to every submission, then frozen.

`OUT/CASE/plan.json` holds a case's plan, `OUT/plans.json` the hash of each: `cdb prepare --plans OUT` refuses a plan
that was changed afterwards. Making goes on where it ended; a case that has a plan is left alone.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from bench.atomic import write_json
from bench.errors import CdbError, DataError, UsageError
from bench.task import Dataset, Task, open_dataset
from evaluator.attachments import kind_of
from evaluator.judges.judge import JudgeError
from evaluator.judges.model.chat import Chat, ToolSpec, picture_part, text_part
from evaluator.judges.model.conversation import Conversation, Finish, Repair
from evaluator.judges.model.fences import Fence
from evaluator.judges.model.ledger import Ledger
from evaluator.judges.model.looking import source_tools
from evaluator.judges.model.pictures import PictureError, fit
from evaluator.judges.model.prompts import prompts_digest, render
from evaluator.judges.model.settings import Caps
from evaluator.judges.model.sources import Sources
from evaluator.judges.model.toolbox import Output, Toolbox, ToolInput, tool
from evaluator.plans import check_plan, freeze, unplanned_case
from evaluator.records import CasePlan, CriterionPlan, Usage
from evaluator.rubric import Criterion, read_rubric, require_rubrics

Progress = Callable[[str], None]
MAX_IMAGES = 6


class PlanInput(ToolInput):
    criteria: list[CriterionPlan] = Field(min_length=1, max_length=200)


@dataclass(frozen=True)
class PlanSummary:
    """`made` now, `kept` from before, `failed` with the reason."""

    made: tuple[str, ...]
    kept: tuple[str, ...]
    failed: dict[str, str]
    usage: Usage
    sha256: str


def make_plans(
    dataset_root: Path,
    out: Path,
    chat: Chat | None,
    *,
    editor: str | None = None,
    only: tuple[str, ...] = (),
    caps: Caps | None = None,
    progress: Progress = lambda _line: None,
) -> PlanSummary:
    """Plan every case in scope that has no plan in `out`; with `editor` open every plan in it. Freeze them all.

    Raises UsageError for a wrong folder, a failed first call, or an edited plan that does not fit.
    """
    dataset = open_dataset(dataset_root, only)
    require_rubrics(dataset_root, [task.case_id for task in dataset.tasks])
    out.mkdir(parents=True, exist_ok=True)
    waiting = [task for task in dataset.tasks if not (out / task.case_id / "plan.json").is_file()]
    if chat and waiting:
        chat.check()
    ledger = Ledger(caps or Caps())
    made: list[str] = []
    failed: dict[str, str] = {}
    usage = Usage()
    for task in waiting if chat else ():
        assert chat is not None
        try:
            plan, spent = _asked(task, read_rubric(task.folder), chat, ledger, out)
            usage += spent
        except JudgeError as error:
            usage += error.usage
            failed[task.case_id] = str(error)
            progress(f"{task.case_id}: no plan: {error}")
            continue
        write_json(out / task.case_id / "plan.json", plan.model_dump(mode="json"))
        made.append(task.case_id)
        progress(f"{task.case_id}: {len(plan.criteria)} criteria planned")
    if editor:
        made += [task.case_id for task in dataset.tasks if _edited(task, out, editor) and task.case_id not in made]
    sha256 = _freeze(dataset, out, chat)
    kept = tuple(t.case_id for t in dataset.tasks if t.case_id not in made and t.case_id not in failed)
    return PlanSummary(tuple(made), kept, failed, usage, sha256)


def _asked(
    task: Task, criteria: tuple[Criterion, ...], chat: Chat, ledger: Ledger, out: Path
) -> tuple[CasePlan, Usage]:
    """One conversation about one case. Raises JudgeError."""
    fence = Fence()
    sources = Sources(task.project, task.project)
    folder = out / task.case_id / "planner"
    toolbox = Toolbox(source_tools(sources), fence, folder)

    def take(given: dict[str, Any], _last: bool) -> CasePlan:
        plan = CasePlan(case=task.case_id, criteria=PlanInput.model_validate(given).criteria)
        try:
            check_plan(plan, task.case_id, criteria, "the plan")
        except DataError as error:
            raise Repair(str(error)) from error
        return plan

    talk: Conversation[CasePlan] = Conversation(
        chat, ledger.purse(task.case_id), toolbox, Finish(_PLAN, take), f"{task.case_id}/planner", folder
    )
    plan = talk.hold(render("planner", mark=fence.mark), _opening(task, criteria, sources, fence, chat))
    return plan, talk.usage


_PLAN = ToolSpec(
    "plan",
    "The plan: every criterion by its index, in order. Ends the conversation.",
    tool("plan", "", PlanInput, lambda _i: Output()).spec.parameters,
)


def _opening(
    task: Task, criteria: tuple[Criterion, ...], sources: Sources, fence: Fence, chat: Chat
) -> list[dict[str, Any]]:
    request = "\n\n".join(task.queries)
    listed = "\n".join(f"{c.criterion_index}. {c.text}" for c in criteria)
    files = fence.data("list_files", sources.tree()[:20_000])
    parts = [text_part(f"# The user's request\n\n{request}\n\n# Files of the start\n\n{files}")]
    images = [*task.annotations, *(name for name in task.attachments if kind_of(name) == "image")]
    for name in images[:MAX_IMAGES] if chat.vision else ():
        try:
            parts += [text_part(f"Picture: {name}"), picture_part(fit(task.project / name), "image/jpeg")]
        except PictureError:
            continue  # it stands in the list of files
    return [*parts, text_part(f"# The criteria\n\n{listed}\n\nPlan each. Begin.")]


def _edited(task: Task, out: Path, editor: str) -> bool:
    """Open a case's plan (a template where there is none) in the editor; whether it was changed.

    The plan that counts is only replaced by one that fits the rubric. Raises UsageError otherwise."""
    path, criteria = out / task.case_id / "plan.json", read_rubric(task.folder)
    before = path.read_bytes() if path.is_file() else b""
    draft = path.with_name("plan.draft.json")
    if not draft.is_file():
        start = json.loads(before) if before else unplanned_case(task.case_id, criteria).model_dump(mode="json")
        write_json(draft, start)
    ended = subprocess.run([*shlex.split(editor), str(draft)], check=False)
    if ended.returncode:
        raise UsageError(f"the editor {editor!r} ended with {ended.returncode}; {draft} is kept")
    try:
        plan = CasePlan.model_validate_json(draft.read_bytes())
        check_plan(plan, task.case_id, criteria, str(draft))
    except (ValidationError, CdbError) as error:
        raise UsageError(
            f"{draft} is no plan of this case: {error}\nRun the same command to go on with it"
        ) from error
    write_json(path, plan.model_dump(mode="json"))
    draft.unlink()
    return path.read_bytes() != before


def _freeze(dataset: Dataset, out: Path, chat: Chat | None) -> str:
    """Check every plan there is against its rubric and write `plans.json`; the hash of them all."""
    by = {**chat.describe(), "prompts_sha256": prompts_digest("planner")} if chat else None
    return freeze(out, [(task.case_id, read_rubric(task.folder)) for task in dataset.tasks], by)
