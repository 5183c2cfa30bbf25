"""`cdb dataset verify --leaks`: does anything a solver is given hold the text of a criterion, or a rubric?

Only the evaluator may know the text, so the check is its own; a hit names file and criterion by number, never the
text. Every task's own criteria are looked for verbatim, those of all tasks as near-duplicates (`near_text` says
what that means). What a user asks for legitimately shares words with its criteria: in `user_queries.json` only a
whole criterion of at least `REQUEST_WORDS` words counts.
"""

from __future__ import annotations

import re
import tarfile
import tempfile
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from bench.errors import DataError, UsageError
from bench.release import EVALUATION_ARCHIVE, EVALUATION_ROOT, SOLVER_ARCHIVE, SOLVER_ROOT, open_release
from bench.strict_json import parse_json
from bench.task import QUERIES, open_dataset
from bench.tree import file_sha256
from evaluator.near_text import Match, Sentences, words
from evaluator.rubric import RUBRIC, Criterion, parse_rubric, read_rubric
from evaluator.text_decoding import readings, without_tags
from evaluator.text_of_files import Piece, texts_of

REQUEST_WORDS = 8
MAX_RUBRIC_BYTES = 16 * 1024 * 1024
INDEX = "data/tasks.parquet"
_RUBRIC_STEM = re.compile(r"(?:.*[^a-z])?(?:rubrics?|acceptance[ _.-]?criteria|grading[ _.-]?criteria)(?:[^a-z].*)?")
_PROSE = ".txt .md .pdf .doc .docx .odt .rtf .html .xls .xlsx .ods"
_DATA = ".json .jsonl .ndjson .json5 .csv .tsv .yaml .yml .toml .xml .parquet .zip .gz .tgz .bak .orig .old"
_DATA_SUFFIXES = frozenset(["", *f"{_PROSE} {_DATA}".split(" ")])
"""A source file may well be about rubrics (`RubricEditor.tsx`); a file of data or prose so named may not."""

Progress = Callable[[str], None]
Rubrics = dict[str, tuple[Criterion, ...]]


class Hit(NamedTuple):
    """One leak. `case` and `file`: where; `criterion_case` and `criterion_index`: what (0: the file as a whole)."""

    case: str
    file: str
    where: str
    kind: str
    """`verbatim`, `near`, or `name` (the file is named like a rubric)."""
    score: float
    criterion_case: str
    criterion_index: int

    def line(self) -> str:
        if self.kind == "name":
            return f"{self.case}: {self.file}: named like a rubric; remove it"
        whose = "" if self.criterion_case == self.case else f" of {self.criterion_case}"
        what = f"criterion {self.criterion_index}{whose}, {self.kind} {self.score:.2f}"
        return f"{self.case}: {self.file} ({self.where}): {what}"


class NotRead(NamedTuple):
    """A part of a solver's file that could not be looked into."""

    case: str
    file: str
    where: str
    reason: str

    def line(self) -> str:
        return f"{self.case}: {self.file} ({self.where}): not looked into: {self.reason}"


@dataclass(frozen=True)
class LeakReport:
    """What was found over how much. Nothing was looked for of `too_short` (criteria too short to tell anything)."""

    hits: tuple[Hit, ...]
    not_read: tuple[NotRead, ...]
    too_short: tuple[tuple[str, int], ...]
    cases: int
    criteria: int
    files: int
    bytes: int

    def as_json(self) -> dict[str, Any]:
        return {
            "hits": [hit._asdict() for hit in self.hits],
            "not_read": [part._asdict() for part in self.not_read],
            "too_short": [{"case": case, "criterion_index": index} for case, index in self.too_short],
            "cases": self.cases,
            "criteria": self.criteria,
            "files": self.files,
            "bytes": self.bytes,
        }

    def lines(self) -> list[str]:
        looked = f"{self.files} files ({self.bytes / 1e6:.1f} MB) of {self.cases} cases for {self.criteria} criteria"
        verdict = f"{len(self.hits)} leaks" if self.hits else "no leak"
        short = [f"{case}: criterion {index} is too short to look for" for case, index in self.too_short]
        found = [*(hit.line() for hit in self.hits), *(part.line() for part in self.not_read)]
        return [*found, *short, f"looked through {looked}: {verdict}"]


def find_leaks(place: Path, progress: Progress = lambda _line: None) -> LeakReport:
    """Look through the solver inputs of a release folder, or of the folder both archives were extracted into.

    Raises UsageError for any other folder, DataError for archives or rubrics that cannot be read.
    """
    if (place / SOLVER_ROOT / "cases").is_dir() and (place / EVALUATION_ROOT / "cases").is_dir():
        cases = [task.case_id for task in open_dataset(place / EVALUATION_ROOT).tasks]
        rubrics = {case: read_rubric(place / EVALUATION_ROOT / "cases" / case) for case in cases}
        return Search(rubrics, progress).report(_files_below(place / SOLVER_ROOT))
    if (place / "cases").is_dir():
        raise UsageError(f"{place} is one of the extracted folders; pass the one above, or the release")
    release = open_release(place)
    rubrics = _rubrics(place / EVALUATION_ARCHIVE, release.case_ids)
    search = Search(rubrics, progress)
    search.index(place / INDEX)
    with tempfile.TemporaryDirectory(prefix="cdb-leaks-") as room:
        return search.report(_members(place / SOLVER_ARCHIVE, Path(room)))


class Search:
    """One search for the criteria of `rubrics` through any number of files."""

    def __init__(self, rubrics: Rubrics, progress: Progress = lambda _line: None) -> None:
        self._rubrics = rubrics
        self._progress = progress
        self._own = {case: Sentences([c.text for c in rubric]) for case, rubric in rubrics.items()}
        self._keys = [(case, c.criterion_index) for case, rubric in rubrics.items() for c in rubric]
        self._all = Sentences([c.text for rubric in rubrics.values() for c in rubric])
        self._seen: dict[tuple[str, str], tuple[list[Hit], list[NotRead]]] = {}
        self._hits: list[Hit] = []
        self._not_read: list[NotRead] = []
        self._files = self._bytes = 0

    def report(self, files: Iterator[tuple[str, Path]]) -> LeakReport:
        """Look through files given as (path below the root, where it lies); a path may be of a folder or a link."""
        case = ""
        for name, path in files:
            if (now := _case_of(name)) != case:
                case = now
                self._progress(f"looking through {case}")
            self.name(name)
            if path.is_file() and not path.is_symlink():
                self.file(name, path)
        short = [key for number, key in enumerate(self._keys) if not self._all.is_looked_for(number)]
        return LeakReport(
            tuple(self._hits),
            tuple(self._not_read),
            tuple(short),
            len(self._rubrics),
            len(self._keys),
            self._files,
            self._bytes,
        )

    def name(self, name: str) -> None:
        """Check what a file or folder is called, and for a link where it leads (`name -> target`)."""
        case, inner = _case_of(name), _inner(name)
        if is_named_like_a_rubric(name):
            self._hits.append(Hit(case, inner, "name", "name", 1.0, case, 0))
        self._hits += _best(self._in_text(case, inner, "file name", inner))

    def file(self, name: str, path: Path) -> None:
        """Look through a file's content. The same content in the same case is looked through once."""
        self._files += 1
        self._bytes += path.stat().st_size
        case, inner = _case_of(name), _inner(name)
        key = (case, file_sha256(path))
        if key not in self._seen:
            hits: list[Hit] = []
            unread: list[NotRead] = []
            for found in texts_of(path):
                if isinstance(found, Piece):
                    hits += self._in_text(case, inner, found.where, found.text)
                else:
                    unread.append(NotRead(case, inner, found.where, found.reason))
            self._seen[key] = (_best(hits), unread)
        self._hits += [hit._replace(file=inner) for hit in self._seen[key][0]]
        self._not_read += [part._replace(file=inner) for part in self._seen[key][1]]

    def index(self, path: Path) -> None:
        """Look through the texts of the task index, which solvers may get too; its pictures are the archive's."""
        import pyarrow.lib
        import pyarrow.parquet

        try:
            table = pyarrow.parquet.read_table(path)
            rows = table.select([name for name in table.column_names if name != "annotation_image"]).to_pylist()
        except (pyarrow.lib.ArrowException, OSError) as error:
            raise DataError(f"{path} is no readable parquet file ({error}); download it again") from error
        for row in rows:
            case = str(row.get("case_id", ""))
            for column, value in row.items():
                where = QUERIES if column == "request" else f"column {column}"
                texts = value if isinstance(value, list) else [value]
                found = [hit for text in texts for hit in self._in_text(case, where, where, str(text))]
                self._hits += [hit._replace(file=INDEX) for hit in _best(found)]

    def _in_text(self, case: str, file: str, where: str, text: str) -> Iterator[Hit]:
        own = self._own.get(case)
        is_request = file == QUERIES
        for reading in readings(text):
            found = words(reading)
            if own:
                for match in own.verbatim(found):
                    if not is_request or own.length(match.sentence) >= REQUEST_WORDS:
                        yield self._hit(case, file, where, match, self._rubrics[case], case)
            if not is_request:
                for match in self._all.near(found):
                    of_case, index = self._keys[match.sentence]
                    kind = "verbatim" if match.score == 1.0 else match.kind
                    yield Hit(case, file, where, kind, match.score, of_case, index)
        if own and "<" in text:
            for match in own.verbatim(words(without_tags(text))):
                if not is_request:
                    yield self._hit(case, file, where, match, self._rubrics[case], case)

    @staticmethod
    def _hit(case: str, file: str, where: str, match: Match, rubric: tuple[Criterion, ...], of_case: str) -> Hit:
        return Hit(case, file, where, match.kind, match.score, of_case, rubric[match.sentence].criterion_index)


def is_named_like_a_rubric(name: str) -> bool:
    """Whether a path's last part is named like a rubric, or any folder in it is called so."""
    *folders, last = PurePosixPath(unicodedata.normalize("NFKC", name).casefold()).parts
    stem, _, _ = last.lstrip(".").partition(".")
    suffix = PurePosixPath(last).suffix
    named = bool(_RUBRIC_STEM.fullmatch(stem)) and suffix in _DATA_SUFFIXES
    return named or any(folder in ("rubric", "rubrics") for folder in folders)


def _best(hits: Iterator[Hit] | list[Hit]) -> list[Hit]:
    """The strongest hit for each criterion."""
    best: dict[tuple[str, int], Hit] = {}
    for hit in hits:
        key = (hit.criterion_case, hit.criterion_index)
        if key not in best or hit.score > best[key].score:
            best[key] = hit
    return sorted(best.values(), key=lambda hit: (hit.criterion_case, hit.criterion_index))


def _case_of(name: str) -> str:
    parts = PurePosixPath(name).parts
    return parts[1] if len(parts) > 1 and parts[0] == "cases" else ""


def _inner(name: str) -> str:
    parts = PurePosixPath(name).parts
    return "/".join(parts[2:]) if len(parts) > 2 and parts[0] == "cases" else name


def _files_below(root: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            yield f"{name} -> {path.readlink()}", path
        elif name != "dataset.json":
            yield name, path


def _members(archive: Path, room: Path) -> Iterator[tuple[str, Path]]:
    """Members of the solver archive, each file laid down in `room` until the next one is asked for."""
    held = room / "member"
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                name = member.name.removeprefix("./")
                notes = " ".join(
                    value for key, value in member.pax_headers.items() if key not in ("path", "linkpath")
                )
                target = f" -> {member.linkname}" if member.linkname else ""
                if notes and not re.fullmatch(r"[\d. -]*", notes):
                    yield f"{name} {notes}", room
                stream = tar.extractfile(member) if member.isreg() else None
                place = room
                if stream is not None:
                    place = held.with_suffix(PurePosixPath(name).suffix[:20])
                    with place.open("wb") as out:
                        while piece := stream.read(1024 * 1024):
                            out.write(piece)
                yield f"{name}{target}", place
                if place is not room:
                    place.unlink()
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(f"{archive} cannot be read to its end ({error}); download it again") from error


def _rubrics(archive: Path, case_ids: tuple[str, ...]) -> Rubrics:
    wanted = {f"cases/{case}/{RUBRIC}": case for case in case_ids}
    found: Rubrics = {}
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                name = member.name.removeprefix("./")
                if name in wanted and member.size <= MAX_RUBRIC_BYTES and (stream := tar.extractfile(member)):
                    found[wanted[name]] = parse_rubric(parse_json(stream.read(), name), wanted[name], name)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{archive} cannot be read to its end ({error}); download it again") from error
    if missing := [case for case in case_ids if case not in found]:
        raise DataError(f"{archive.name} has no {RUBRIC} for {missing[0]}; `cdb dataset verify` says what is wrong")
    return {case: found[case] for case in case_ids}
