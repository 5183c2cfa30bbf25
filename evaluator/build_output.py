"""Where a build has left its pages: as planned, elsewhere, or nowhere but among the sources."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from evaluator.serve_plan import ServePlan
from sandboxes.sandbox import WORKSPACE, Sandbox

FIND_S = 120.0
LISTED_BYTES = 16 * 1024 * 1024


class Output(NamedTuple):
    """The folder to serve, below the workspace, and the flag that says how it differs from the plan (or empty)."""

    folder: str
    flag: str = ""


def find_output(box: Sandbox, plan: ServePlan, began: float, scratch: Path) -> Output | None:
    """The folder with the built pages; None when the build, begun at `began` (Unix time), wrote none.

    A page that lay there before counts only where the plan lets it (`page_may_stay`) and the build wrote something:
    `tsc`, `sass` or a bundler without templates make what a page of the sources refers to.
    """
    planned = plan.output or "dist"
    if not plan.build:
        return Output(planned)
    pages = _pages(_listed(box, scratch, ["-name", "*.html", *_since(began)]))
    if any(_is_below(page, planned) for page in pages):
        return Output(planned)
    below = [page for page in pages if "/" in page]
    if below:
        return Output(min(below, key=lambda page: (page.count("/"), page)).rpartition("/")[0], "output_elsewhere")
    if not plan.page_may_stay or not _listed(box, scratch, _since(began)):
        return None
    sources = _pages(_listed(box, scratch, ["-name", "*.html"]))
    if any(_is_below(page, planned) for page in sources):
        return Output(planned, "page_in_sources")
    return Output(plan.root, "page_in_sources") if any(_is_below(page, plan.root) for page in sources) else None


def _since(began: float) -> list[str]:
    return ["-newermt", f"@{began:.3f}"]


def _is_below(page: str, folder: str) -> bool:
    return folder == "." or page.startswith(f"{folder}/")


def _pages(found: list[str]) -> list[str]:
    """Index pages if there are any, else all pages."""
    return [page for page in found if page.rpartition("/")[2] == "index.html"] or found


def _listed(box: Sandbox, scratch: Path, tests: list[str]) -> list[str]:
    """Files of the workspace that pass find's `tests`, installed packages and caches left out."""
    told = scratch / "found"
    pruned = ["(", "-name", "node_modules", "-o", "-name", ".cache", "-o", "-name", ".git", ")", "-prune", "-o"]
    command = ["find", WORKSPACE, *pruned, "-type", "f", *tests, "-printf", "%P\\0"]
    box.exec(command, deadline_s=FIND_S, cwd="/", stdout=told)
    with told.open("rb") as file:
        return file.read(LISTED_BYTES).decode("utf-8", "surrogateescape").split("\0")[:-1]
