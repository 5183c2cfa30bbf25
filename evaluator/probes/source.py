"""Probes of the source: outputs written down beside a handler, assets that are gone, lines that never run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.tree import list_tree
from evaluator.probes.facts import Ground
from evaluator.probes.walk import WalkEnded, begin, take
from evaluator.records import Citation, ProbeFacts
from evaluator.witness import Witness

CODE = {".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".vue", ".svelte", ".html", ".htm"}
ASSETS = {
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".avif", ".ico", ".mp3", ".wav", ".ogg", ".m4a",
    ".mp4", ".webm", ".mov", ".woff", ".woff2", ".ttf", ".otf", ".pdf", ".json", ".csv",
}  # fmt: skip
NEAR_LINES = 15
MAX_BYTES = 2_000_000
_HANDLER = re.compile(
    r"addEventListener|\.on[a-z]+\s*=|\bon[A-Z]\w*\s*=|\bon(?:click|input|change|submit|key\w+|drop)\b|@click|v-on|"
    r"function\s+\w*(?:handle|submit|apply|calc|total|update)\w*|=>",
)
_OURS = ("node_modules/", "_attachments/", "_annotations/", ".git/")


def literal_near_handler(ground: Ground, witness: Witness) -> ProbeFacts:
    """Whether the values that the witness puts in stand in the submission's own lines beside a handler.

    An input's value in the code that answers to it is how an output made for one input looks. `against` only then;
    texts the witness expects are facts, for a label has to stand somewhere."""
    inputs = {value for value in witness.inputs.values() if len(value.strip()) >= 3 or value.strip().isdigit()}
    expected = {text for text in _expected(witness) if len(text) >= 3} - inputs
    facts: list[str] = []
    bites = False
    for path, number, line, near in _new_lines(ground):
        for value in sorted(inputs):
            if near and _has_literal(line, value):
                bites = True
                facts.append(f"{path}:{number} has the input {value!r} beside a handler: {line.strip()[:160]}")
        facts += [
            f"{path}:{number} has the expected {text!r}: {line.strip()[:160]}"
            for text in sorted(expected)
            if near and text in line
        ][:3]
    finding = "against" if bites else "nothing" if inputs or expected else "unclear"
    return ProbeFacts(probe="literal_near_handler", finding=finding, facts=facts[:20])


def _expected(witness: Witness) -> set[str]:
    steps = [step.model_dump(mode="json", exclude_defaults=True) for step in witness.steps if hasattr(step, "expect")]
    found = {str(step[name]) for step in steps for name in ("equals", "contains") if step.get(name) is not None}
    return {text for text in found if "${" not in text}


def _has_literal(line: str, value: str) -> bool:
    quoted = re.search(rf"""['"`]{re.escape(value)}['"`]""", line)
    number = value.isdigit() and len(value) > 1 and re.search(rf"(?<![\w.]){value}(?![\w.])", line)
    return bool(quoted or number)


def _new_lines(ground: Ground) -> Iterator[tuple[str, int, str, bool]]:
    """Path, number and text of each line of code that the start does not have, and whether a handler is near."""
    for path in _code(ground.submission):
        old = ground.start / path
        known = set(_text(old).splitlines()) if old.is_file() else set()
        lines = _text(ground.submission / path).splitlines()
        handlers = [n for n, line in enumerate(lines) if _HANDLER.search(line)]
        for n, line in enumerate(lines):
            if line not in known:
                yield path, n + 1, line, any(abs(n - at) <= NEAR_LINES for at in handlers)


def _code(root: Path) -> list[str]:
    return [path for path in _files(root) if Path(path).suffix.lower() in CODE]


def _files(root: Path) -> list[str]:
    """Every file of a tree in path order, but for what is nobody's source."""
    names = [str(entry["path"]) for entry in list_tree(root) if "path" in entry and entry["mode"] != "link"]
    return [name for name in names if not any(part in f"{name}/" for part in _OURS)]


def _text(path: Path) -> str:
    with path.open("rb") as stream:
        return stream.read(MAX_BYTES).decode("utf-8", "replace")


def assets(ground: Ground) -> ProbeFacts:
    """Pictures, sounds, fonts and data of the start that are gone or another now, and what the page asks for in vain.

    `against` when the start page got a file of its own that the submission asks for and does not get."""
    before, after = _assets(ground.start), _assets(ground.submission)
    lost = sorted(before - after)
    facts = [f"gone: {path}" for path in lost[:20]] + [f"new: {path}" for path in sorted(after - before)[:20]]
    facts += [
        f"another content: {path}"
        for path in sorted(before & after)
        if (ground.start / path).read_bytes() != (ground.submission / path).read_bytes()
    ][:20]
    now = _unanswered(ground.running.submission)
    then = _unanswered(ground.running.start) if now else set()
    facts += [f"asked for in vain: {url}" for url in sorted(now)]
    finding = "against" if now - then else "nothing"
    return ProbeFacts(probe="assets", finding=finding, facts=facts, visits=2 if now else 1)


def _assets(root: Path) -> set[str]:
    return {path for path in _files(root) if Path(path).suffix.lower() in ASSETS}


def _unanswered(browser: Any) -> set[str]:
    """Paths of its own that the application asks for when it opens and that are not there."""
    found: set[str] = set()
    with browser.open() as visit:
        base = visit.base_url.rstrip("/")

        def note(answer: Any) -> None:
            if answer.status >= 400 and visit.is_own(answer.url) and not answer.url.endswith("/favicon.ico"):
                found.add(answer.url.removeprefix(base))

        visit.context.on("response", note)
        visit.goto("/")
        visit.page.wait_for_timeout(300)
    return found


def coverage(ground: Ground, witness: Witness, citations: Sequence[Citation]) -> ProbeFacts:
    """Whether the cited lines run while the witness does: Chromium's own count of each block.

    `against` when a line that was cited as the feature is loaded and never runs; a line that is in no script as it
    stands (built code, markup) is a fact and nothing more."""
    program = witness.with_inputs(None)
    ended = ""
    with ground.running.submission.open(viewport=program.viewport, fake_clock=program.advances_clock) as visit:
        session = visit.context.new_cdp_session(visit.page)
        for command in ("Profiler.enable", "Debugger.enable"):
            session.send(command)
        session.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": True})
        try:
            stage = begin(visit, program)
            for step in program.steps:
                take(stage, step)
        except WalkEnded as why:
            ended = str(why)
        if visit.hung or visit.crashed:
            return ProbeFacts(probe="coverage", finding="unclear", facts=[f"the walk ended: {ended}"], visits=1)
        scripts = [
            (session.send("Debugger.getScriptSource", {"scriptId": one["scriptId"]})["scriptSource"], one)
            for one in session.send("Profiler.takePreciseCoverage")["result"]
        ]
    facts = [f"the walk ended: {ended}"] if ended else []
    counts: list[int | None] = []
    for citation in citations:
        ran = _times_run(citation.quote, scripts)
        counts.append(ran)
        said = "is in no script as it stands" if ran is None else f"ran {ran} times" if ran else "never ran"
        facts.append(f"{citation.path}, “{citation.quote.strip()[:80]}”: {said}")
    finding = "against" if 0 in counts and not ended else "nothing" if any(counts) else "unclear"
    return ProbeFacts(probe="coverage", finding=finding, facts=facts, visits=1)


def _times_run(quote: str, scripts: Sequence[tuple[str, Any]]) -> int | None:
    """How often the block around the quotation's end ran, the most of all scripts; None where it is in none."""
    words = [re.escape(word) for word in quote.split()]
    wanted = re.compile(r"\s+".join(words))
    best: int | None = None
    for source, one in scripts:
        for match in wanted.finditer(source):
            at = match.end() - 1
            ranges = [r for function in one["functions"] for r in function["ranges"]]
            around = [r for r in ranges if r["startOffset"] <= at < r["endOffset"]]
            if around:
                inner = min(around, key=lambda r: r["endOffset"] - r["startOffset"])
                best = max(best or 0, int(inner["count"]))
    return best
