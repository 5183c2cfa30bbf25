"""What differs between start and submission, from the facts of both."""

from __future__ import annotations

from pathlib import Path

from bench.atomic import write_bytes
from evaluator.browser_tools.compare import MAX_LINES, beside, differences
from evaluator.first_look.facts import ClosePage, Differences, Flow

PAIR = "pair-desktop.jpg"


def differ(start: ClosePage, submission: ClosePage, flows: list[Flow], folder: Path) -> Differences:
    """Differences of the two opening pages; the pair's picture is written to `folder`."""
    pictures = [folder / f"{app}-desktop.jpg" for app in ("start", "submission")]
    shares, pair = None, None
    if all(picture.is_file() for picture in pictures):
        first, second = (picture.read_bytes() for picture in pictures)
        shares, pair = differences(first, second), PAIR
        write_bytes(folder / PAIR, beside(first, second))
    trees = [_tree(folder, app) for app in ("start", "submission")]
    return Differences(
        pair=pair,
        share=shares[0] if shares else None,
        regions=shares[1] if shares else [],
        only_start=_missing(trees[0], trees[1]),
        only_submission=_missing(trees[1], trees[0]),
        new_failed_requests=_missing(_failed(submission), _failed(start)),
        new_console_errors=_missing(_errors(submission), _errors(start)),
        new_violations=_missing(_rules(submission), _rules(start)),
        mended_violations=_missing(_rules(start), _rules(submission)),
        lost_controls=_missing(_controls(start), _controls(submission)),
        new_controls=_missing(_controls(submission), _controls(start)),
        flows_lost=[flow.name for flow in flows if flow.lost],
        flows_kept=sum(any(r.outcome == "held" for r in flow.submission) for flow in flows),
    )


def _tree(folder: Path, app: str) -> list[str]:
    path = folder / f"{app}-desktop.snapshot.txt"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    return [line.strip()[:300] for line in lines]


def _missing(these: list[str], there: list[str]) -> list[str]:
    known = set(there)
    return [one for one in dict.fromkeys(these) if one not in known][:MAX_LINES]


def _failed(page: ClosePage) -> list[str]:
    return [f"{one.method} {_path(one.url)}: {one.failure or one.status}" for one in page.network if one.failed]


def _path(url: str) -> str:
    """Without the origin of the application, whose port differs from one container to the next."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    own = host.partition(":")[0] in ("127.0.0.1", "localhost")
    return f"/{path}" if own else f"{scheme}://{host}{slash}{path}"


def _errors(page: ClosePage) -> list[str]:
    return [line for line in page.console if line.startswith(("error:", "pageerror:"))]


def _rules(page: ClosePage) -> list[str]:
    found = page.accessibility.violations if page.accessibility else []
    return [f"{one.rule} ({one.impact}): {one.help}" for one in found]


def _controls(page: ClosePage) -> list[str]:
    return [f"{state.action['target']['role']} “{state.action['target']['name']}”" for state in page.states]
