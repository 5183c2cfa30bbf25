"""What is wrong, or probably so, with people's own cases before they are packed: `cdb dataset pack --lint`.

An *error* keeps a release from being packed: somebody would be misled or something would be lost. A *warning* is for
its author to weigh. Every finding names the file and what to do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rapidfuzz import fuzz

from bench.errors import CdbError, DataError
from bench.strict_json import read_json
from bench.task import QUERIES, read_task
from evaluator.case_source import CASE_ID
from evaluator.external_addresses import addresses_in
from evaluator.fixed_archive import LEFT_OUT
from evaluator.leaks import Search
from evaluator.near_text import words
from evaluator.rubric import RUBRIC, Criterion, parse_rubric
from evaluator.serve_file import plan_of
from evaluator.serve_plan import ServePlan

MIB = 1024 * 1024
LARGE_FILE_BYTES = 100 * MIB
MAX_FILE_BYTES = 1024 * MIB
MAX_PROJECT_BYTES = 2048 * MIB
"""What a solver's workspace holds (`sandboxes.sandbox.Limits`, `TreePolicy`)."""
MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 900
SIMILAR = 92
"""Token-sort ratio (0–100) from which two criteria of a task are taken for near-duplicates."""
_TODO_OF_AN_APP = r"(?![ -]*(?:apps?|lists?|items?|boards?|pages?|cards?|columns?|tasks?|comments?|MVC)\b)"
_BLANK = r"your|insert|enter|put|fill|todo|tbd|placeholder|describe|name of|description of|request of"
PLACEHOLDERS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a note to oneself", re.compile(r"\b(?:TODO|TBD|FIXME|XXX)\b" + _TODO_OF_AN_APP)),
    ("filler text", re.compile(r"\blorem\s+ipsum\b", re.IGNORECASE)),
    ("a template's field", re.compile(r"\{\{[^{}]{0,200}\}\}|\$\{[A-Za-z_][\w.]*\}|\[\[[^\[\]]{0,200}\]\]")),
    (
        "a gap to be filled in",
        re.compile(rf"<\s*(?:{_BLANK})\b[^<>]{{0,80}}>|\[(?:{_BLANK})\b[^\]]{{0,80}}\]", re.IGNORECASE),
    ),
    (
        "a gap to be filled in",
        re.compile(r"<\s*(?:…|\.\.\.)\s*>|<[A-Z][A-Z0-9]*(?:[ _-][A-Z0-9]+)+>|<(?:NAME|TITLE|TEXT|URL|DATE)>"),
    ),
)
PRESERVES = re.compile(
    r"\b(?:still|remains?|unchanged|preserv\w*|keeps?|kept|continues?|existing|as before|intact|untouched|"
    r"not (?:break|change|affect)|without (?:breaking|changing|affecting)|no regression)\b"
    r"|仍|保持|不变|保留|原有|照常",
    re.IGNORECASE,
)
RESERVED = re.compile(r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\..*)?", re.IGNORECASE)
_SUFFIX = "pdf docx? xlsx? pptx? csv md txt png jpe?g gif webp svg mp3 wav m4a ogg mp4 mov webm mkv zip"
FILE_NAME = re.compile(rf"[\w\-.()]+\.(?:{_SUFFIX.replace(' ', '|')})\b", re.IGNORECASE)

Level = Literal["error", "warning"]
Progress = Callable[[str], None]


class Finding(NamedTuple):
    """One thing to mend or to weigh. `file` is relative to the case's folder."""

    level: Level
    code: str
    case: str
    file: str
    what: str
    remedy: str

    def line(self) -> str:
        return f"{self.level}: {self.case}/{self.file}: {self.what}; {self.remedy} [{self.code}]"

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


def lint(folders: Sequence[Path], progress: Progress = lambda _line: None) -> list[Finding]:
    """Every finding over the case folders, case by case; nothing is changed and nothing of a project runs."""
    findings: list[Finding] = []
    rubrics: dict[str, tuple[Criterion, ...]] = {}
    for folder in folders:
        progress(f"looking at {folder.name}")
        findings += _case(folder, rubrics)
    findings += _same_ids(rubrics)
    findings += _twin_cases(folders)
    for folder in folders:
        if folder.name in rubrics:
            findings += _leaks(folder, rubrics)
    return sorted(findings, key=lambda f: (f.case, f.level, f.file, f.code))


def _case(folder: Path, rubrics: dict[str, tuple[Criterion, ...]]) -> Iterator[Finding]:
    case = folder.name
    if not CASE_ID.fullmatch(case):
        what = "an id is at most 100 letters, digits, dots, dashes and underscores"
        yield Finding("error", "case_id", case, ".", what, "rename the folder")
    try:
        task = read_task(folder)
    except DataError as error:
        yield Finding("error", "unreadable", case, QUERIES, str(error), "see docs/own-dataset.md for its form")
        return
    yield from _request(case, task.queries)
    try:
        if not (folder / RUBRIC).is_file():
            raise DataError("there is none")
        rubrics[case] = parse_rubric(read_json(folder / RUBRIC), case, RUBRIC)
        yield from _criteria(case, rubrics[case])
    except DataError as error:
        yield Finding("error", "rubric", case, RUBRIC, str(error), "write a list of criteria, each with its text")
    yield from _annotations(case, task.project, task.annotations)
    yield from _attachments(case, "\n".join(task.queries), task.project, task.attachments)
    yield from _names(case, task.project)
    yield from _sizes(case, task.project)
    yield from _application(case, task.project)


def _request(case: str, queries: Sequence[str]) -> Iterator[Finding]:
    if not queries[0].strip():
        yield Finding("error", "request_empty", case, QUERIES, "the request is empty", "write what the user asks for")
    for text in queries:
        for what, pattern in PLACEHOLDERS:
            for found in dict.fromkeys(match.group() for match in pattern.finditer(text)):
                told = f"{found[:60]!r} looks like {what}"
                yield Finding(
                    "error", "placeholder", case, QUERIES, told, "write the request out, or --allow placeholder"
                )


def _criteria(case: str, rubric: Sequence[Criterion]) -> Iterator[Finding]:
    normal = {c.criterion_index: " ".join(words(c.text)) for c in rubric}
    for c in rubric:
        if not normal[c.criterion_index]:
            what = f"criterion {c.criterion_index} has no words"
            yield Finding("error", "criterion_empty", case, RUBRIC, what, "write what must hold")
        for what, pattern in PLACEHOLDERS:
            if found := pattern.search(c.text):
                told = f"criterion {c.criterion_index}: {found.group()[:60]!r} looks like {what}"
                yield Finding("error", "placeholder", case, RUBRIC, told, "write it out, or --allow placeholder")
    for a, b in combinations(rubric, 2):
        one, two = normal[a.criterion_index], normal[b.criterion_index]
        pair = f"criteria {a.criterion_index} and {b.criterion_index}"
        if one and one == two:
            yield Finding("error", "criterion_twice", case, RUBRIC, f"{pair} are the same", "keep one of them")
        elif one and two and _nearly_same(one, two):
            what = f"{pair} are nearly the same"
            yield Finding(
                "warning", "criterion_near", case, RUBRIC, what, "merge them, or say more clearly what differs"
            )
    if not any(PRESERVES.search(c.text) for c in rubric):
        what = "no criterion says what must stay as it is"
        yield Finding(
            "warning", "no_preservation", case, RUBRIC, what, "add one, so that breaking things costs credit"
        )


def _nearly_same(one: str, two: str) -> bool:
    """Nearly the same words, and not merely another number or name in the same sentence."""
    if re.findall(r"\d+", one) != re.findall(r"\d+", two):
        return False
    return fuzz.token_sort_ratio(one, two) >= SIMILAR


def _annotations(case: str, project: Path, annotations: Sequence[str]) -> Iterator[Finding]:
    where = "project/_annotations"
    if not any(name.lower().endswith(".png") for name in annotations):
        yield Finding(
            "error", "annotation_missing", case, where, "there is no PNG", "put the annotated screenshot there"
        )
    for name in annotations:
        if fault := _picture_fault(project / name):
            told = f"it cannot be shown: {fault}"
            yield Finding(
                "error", "annotation_broken", case, f"project/{name}", told, "save the screenshot again as PNG"
            )


def _picture_fault(path: Path) -> str:
    """Why a file is no whole picture of the format its name says; empty when it is one."""
    from PIL import Image

    if path.suffix.lower() not in (".png", ".jpg", ".jpeg", ".webp", ".gif"):
        return ""
    try:
        with Image.open(path) as image:
            image.load()
            if path.suffix.lower() == ".png" and image.format != "PNG":
                return f"it is {image.format}, whatever its name says"
            return "" if min(image.size) >= 16 else f"it is {image.size[0]}×{image.size[1]} pixels"
    except Exception as error:  # noqa: BLE001  (a damaged picture fails in any way; the finding names it)
        return str(error).splitlines()[0][:200] or type(error).__name__


def _attachments(case: str, request: str, project: Path, attachments: Sequence[str]) -> Iterator[Finding]:
    text = unicodedata.normalize("NFC", request).casefold()
    here = {unicodedata.normalize("NFC", path.name).casefold() for path in project.rglob("*")}
    names = {unicodedata.normalize("NFC", Path(name).name).casefold(): name for name in attachments}
    for name in dict.fromkeys(match.group() for match in FILE_NAME.finditer(unicodedata.normalize("NFC", request))):
        if name.casefold() not in here and not _is_elsewhere(name, request):
            told = f"it speaks of {name}, which is nowhere in project/"
            yield Finding("warning", "attachment_missing", case, QUERIES, told, "add the file, or correct the name")
    for short, name in names.items():
        if short not in text and Path(short).stem not in text:
            told = "the request does not mention it"
            yield Finding(
                "warning", "attachment_unmentioned", case, f"project/{name}", told, "mention it, or remove it"
            )


def _is_elsewhere(name: str, request: str) -> bool:
    """Whether the name is the end of a web address."""
    return bool(re.search(rf"https?://\S*{re.escape(name)}", request))


def _names(case: str, project: Path) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for path in sorted(project.rglob("*")):
        relative = path.relative_to(project)
        if LEFT_OUT.intersection(relative.parts):
            continue
        shown = relative.as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        file = f"project/{shown}"
        if what := _name_fault(path.name, relative.as_posix()):
            yield Finding("error", "file_name", case, file, what, "rename it")
        twin = unicodedata.normalize("NFC", relative.as_posix()).casefold()
        if twin in seen:
            what = (
                f"it differs from {seen[twin]} in case or accents only, and one would replace the other on some disks"
            )
            yield Finding("error", "file_twins", case, file, what, "rename one of them")
        seen[twin] = shown
        if path.is_symlink() and not path.resolve().is_relative_to(project.resolve()):
            yield Finding(
                "error", "link_out", case, file, "the link leads out of the project", "copy the file itself"
            )
        elif not path.is_symlink() and not path.is_file() and not path.is_dir():
            yield Finding("error", "special_file", case, file, "it is neither file, folder nor link", "remove it")


def _name_fault(name: str, path: str) -> str:
    """Why a file name does not survive another system or an archive; empty when it does."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    if size > MAX_NAME_BYTES or len(path.encode()) > MAX_PATH_BYTES:
        return f"its name or path is longer than {MAX_NAME_BYTES} or {MAX_PATH_BYTES} bytes"
    if bad := sorted(set(name) & set('<>:"|?*\\')):
        return f"some systems forbid {' '.join(bad)} in a name"
    if any(unicodedata.category(c) == "Cc" for c in name):
        return "its name holds a control character"
    if name[-1] in ". " or RESERVED.fullmatch(name):
        return "some systems cannot keep such a name (a device's, or a dot or space at its end)"
    return ""


def _sizes(case: str, project: Path) -> Iterator[Finding]:
    total = 0
    for path in sorted(project.rglob("*")):
        if path.is_symlink() or not path.is_file() or LEFT_OUT.intersection(path.relative_to(project).parts):
            continue
        size = path.stat().st_size
        total += size
        file = f"project/{path.relative_to(project).as_posix()}"
        if size > MAX_FILE_BYTES:
            told = f"{size / MIB:.0f} MiB; a workspace takes files up to {MAX_FILE_BYTES // MIB} MiB"
            yield Finding("error", "too_large", case, file, told, "make it smaller")
        elif size > LARGE_FILE_BYTES:
            yield Finding("warning", "large", case, file, f"{size / MIB:.0f} MiB", "make it smaller, if it can be")
    if total > MAX_PROJECT_BYTES // 2:
        told = f"{total / MIB:.0f} MiB in all; {MAX_PROJECT_BYTES // MIB} MiB must do for it and its packages"
        yield Finding("error", "too_large", case, "project", told, "make it smaller")


def _application(case: str, project: Path) -> Iterator[Finding]:
    for name in sorted(LEFT_OUT):
        if found := next((p for p in sorted(project.rglob(name)) if p.name == name), None):
            file = f"project/{found.relative_to(project).as_posix()}"
            yield Finding("warning", "left_out", case, file, "it is not packed", "remove it, if nothing needs it")
    try:
        plan = plan_of(project)
    except CdbError as error:
        yield Finding("error", "no_application", case, "project", str(error), "add a page or a package.json")
        return
    yield from _lock(case, plan)
    by_host: dict[str, str] = {}
    for found_address in addresses_in(project):
        by_host.setdefault(found_address.host, found_address.file)
    for host, file in sorted(by_host.items()):
        told = f"it loads from {host}, which no evaluation reaches"
        yield Finding(
            "warning", "external", case, f"project/{file}", told, "bring the files along, or `cdb dataset freeze`"
        )


def _lock(case: str, plan: ServePlan) -> Iterator[Finding]:
    if plan.kind == "npm" and plan.install and not plan.lock:
        file = "project/package.json" if plan.root == "." else f"project/{plan.root}/package.json"
        told = "there is no lock file, so every day may give other versions"
        yield Finding("warning", "no_lock", case, file, told, "run `npm install` once and keep package-lock.json")


def _same_ids(rubrics: dict[str, tuple[Criterion, ...]]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for case, rubric in rubrics.items():
        for criterion in rubric:
            if seen.setdefault(criterion.rubric_id, case) != case:
                told = f"the id {criterion.rubric_id!r} is one of {seen[criterion.rubric_id]}, too"
                yield Finding(
                    "error", "rubric_id", case, RUBRIC, told, "give every criterion of the release its own id"
                )


def _twin_cases(folders: Sequence[Path]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for folder in folders:
        if (other := seen.setdefault(folder.name.casefold(), folder.name)) != folder.name:
            yield Finding(
                "error", "case_id", folder.name, ".", f"its id differs from {other} in case only", "rename it"
            )


def _leaks(folder: Path, rubrics: dict[str, tuple[Criterion, ...]]) -> Iterator[Finding]:
    """Criterion text in what a solver is given, however it is written down (`evaluator.leaks`)."""
    case = folder.name
    files = [(QUERIES, folder / QUERIES)]
    files += [
        (path.relative_to(folder).as_posix(), path)
        for path in sorted((folder / "project").rglob("*"))
        if not LEFT_OUT.intersection(path.relative_to(folder).parts)
    ]
    report = Search(rubrics).report((f"cases/{case}/{name}", path) for name, path in files)
    for hit in report.hits:
        told = "it is named like a rubric" if hit.kind == "name" else hit.line().partition(": ")[2]
        yield Finding("error", "leak", case, hit.file, told, "take it out: a solver would read it")
    for part in report.not_read:
        told = f"it was not looked into for criterion text ({part.where}): {part.reason}"
        yield Finding("warning", "not_read", case, part.file, told, "make sure that it gives nothing away")
