"""axe-core on an open page. The script comes with the package axe-playwright-python, so it is locked by hash."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

from evaluator.browser_tools.call import tool_call
from evaluator.first_look.facts import Accessibility, Violation
from evaluator.replay.stage import Stage

AXE_S = 30.0
_RUN = """async () => {
  const seen = await axe.run(document, {resultTypes: ['violations', 'incomplete'], iframes: false, pingWaitTime: 1});
  const brief = one => ({rule: one.id, impact: one.impact || 'minor', help: one.help, count: one.nodes.length,
    where: one.nodes.slice(0, 3).map(node => node.target.flat().join(' ').slice(0, 200))});
  return {violations: seen.violations.map(brief), undecided: seen.incomplete.map(one => one.id),
    passed: seen.passes.length};
}"""


@cache
def axe_script() -> str:
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def axe_version() -> str:
    """As the script's own first line says it."""
    found = re.match(r"/\*! axe v([0-9.]+)", axe_script())
    return found[1] if found else "unknown"


@tool_call(AXE_S)
def accessibility(stage: Stage) -> Accessibility:
    """The page's violations, worst first. It runs in the page's own world: a page may falsify it."""
    page = stage.page
    page.evaluate(axe_script())
    seen: dict[str, Any] = page.evaluate(_RUN)
    order = ["critical", "serious", "moderate", "minor"]
    found = [Violation.model_validate(one) for one in seen["violations"]]
    found.sort(key=lambda one: (order.index(one.impact) if one.impact in order else 9, one.rule))
    return Accessibility(
        axe=axe_version(), violations=found, undecided=sorted(seen["undecided"]), passed=seen["passed"]
    )
