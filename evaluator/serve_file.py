"""`serve.json`: a person says how a case's application is built and served, where detection does not do."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from bench.errors import DataError
from bench.strict_json import read_json
from evaluator.serve_plan import ServePlan, learn_plan

SERVE_FILE = "serve.json"
"""Beside `project/` in the case's folder."""
PLACES = ("root", "entry", "index", "output", "fallback_page")


def plan_of(project: Path) -> ServePlan:
    """How a case's start application is served: by the case's `serve.json`, else as its files tell.

    Raises DataError naming the file and its fault, UnknownApplication when nothing is recognised.
    """
    file = project.parent / SERVE_FILE
    return read_serve_file(file) if file.is_file() else learn_plan(project)


def read_serve_file(file: Path) -> ServePlan:
    """A plan made by hand: the fields of a serve plan, all but `kind` with their defaults."""
    content = read_json(file)
    try:
        plan = ServePlan.model_validate(content if isinstance(content, dict) else {"": content})
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, e['loc'])) or 'the file'}: {e['msg']}" for e in error.errors()]
        raise DataError(f"{file}: {'; '.join(faults)}; the fields are in docs/serving.md") from error
    for name in PLACES:
        place = PurePosixPath(getattr(plan, name) or ".")
        if place.is_absolute() or ".." in place.parts:
            raise DataError(f"{file}: {name} leads out of the application ({place}); give a path below it")
    if plan.kind == "npm" and plan.output is None and not plan.start:
        raise DataError(f"{file}: a plan of kind npm needs `output` (a folder of pages) or `start` (a command)")
    if plan.kind == "static" and (plan.install or plan.build or plan.start):
        raise DataError(f"{file}: a static application has no commands; write kind npm")
    return plan.model_copy(update={"by_hand": True})
