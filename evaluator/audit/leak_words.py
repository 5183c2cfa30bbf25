"""What gives a leak away in a text: criteria, names of rubrics, addresses of the dataset, words to the judge.

What the task itself gives its solver (request, digests of its attachments, starting application) is no secret: a
criterion, name or address that stands there is not looked for in that task's trial.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from evaluator.judges.model.fences import speaking_lines
from evaluator.near_text import Match, Sentences, words
from evaluator.text_decoding import as_text, encoded_blocks, readings, without_tags

Kind = Literal[
    "criterion_verbatim", "criterion_near", "rubric_name", "dataset_name", "dataset_address", "hosted_tool",
    "evaluator_directed",
]  # fmt: skip
Key = tuple[str, int]
"""Case and criterion index."""

SENTENCE_WORDS = 12
"""A criterion's sentence of at least so many words is looked for by itself as well."""
SHORT_WORDS = 8
"""A criterion of fewer words may stand in a text by chance: it counts only where another of its task stands too."""
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")
_RUBRIC_NAME = re.compile(
    r"(?i)\b(?:rubrics?(?:_\d+)?\.jsonl?|rubrics?\.(?:csv|ya?ml|parquet)|eval_withrubric|evaluation-inputs"
    r"|(?:acceptance|grading)[_-]criteria\.(?:jsonl?|csv|ya?ml|md|txt))\b"
)
_DATASET_NAME = re.compile(
    r"(?i)\bco-?design[\s_-]?bench(?:\.github\.io)?\b|\bme-?96\b|\bsolve_norubric\b|\b2610\.35138\b"
)
_DATASET_ADDRESS = re.compile(
    r"(?i)\bcodesignbench\.github\.io\b|\b(?:huggingface\.co|hf\.co|hf-mirror\.com)/(?:api/)?datasets\b"
    r"|\bdatasets-server\.huggingface\.co\b|\bmodelscope\.cn/(?:api/v1/)?datasets\b|\bload_dataset\(\s*[\"'][\w.-]+/"
)
_TALK_OF_PROMPTS = re.compile(r"(?i)system[ \t_-]*prompt")
"""What an application with a chat in it has of its own; by itself it speaks to nobody."""
_NAMES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("rubric_name", _RUBRIC_NAME), ("dataset_name", _DATASET_NAME), ("dataset_address", _DATASET_ADDRESS),
)  # fmt: skip


class Sign(NamedTuple):
    """One sign of a leak in a text. `what` names it without quoting anything."""

    kind: Kind
    what: str


class Secrets:
    """The criteria of all tasks of a judging, and how much of them each task gives away itself."""

    def __init__(self, criteria: Mapping[str, Sequence[tuple[int, str]]]) -> None:
        """`criteria`: case → (criterion index, text)."""
        parts = [
            (case, index, whole, text)
            for case, listed in criteria.items()
            for index, criterion in listed
            for whole, text in _parts(criterion)
        ]
        self._keys = [(case, index) for case, index, _, _ in parts]
        self._sentences = Sentences([text for _, _, _, text in parts])
        own = {case: [n for n, key in enumerate(self._keys) if key[0] == case] for case in criteria}
        self._own = {case: Sentences([parts[n][3] for n in numbers]) for case, numbers in own.items()}
        self._own_numbers = own
        self._given: dict[str, set[int]] = {case: set() for case in criteria}
        self._given_names: dict[str, set[str]] = {case: set() for case in criteria}
        self._given_lines: dict[str, set[str]] = {case: set() for case in criteria}
        looked_for = {self._keys[n] for n in range(len(parts)) if self._sentences.is_looked_for(n)}
        self.too_short = sorted(set(self._keys) - looked_for)

    def give(self, case: str, text: str) -> None:
        """Note what a text that the solver is given holds already."""
        self._given[case] |= {number for number, _ in self._matches(case, text)}
        self._given_names[case] |= {found.casefold() for _, found in _names(text)}
        self._given_lines[case] |= {line.strip() for _, line in _spoken(text)}

    def given(self, case: str) -> list[int]:
        """Its criteria that its own material holds (whole, or a sentence of them)."""
        return sorted({self._keys[n][1] for n in self._given[case] if self._keys[n][0] == case})

    def criteria_in(self, case: str, text: str) -> list[Sign]:
        """Criteria that stand in a text, verbatim or nearly, those of other tasks too: each once, its strongest."""
        best: dict[Key, Match] = {}
        for number, match in self._matches(case, text):
            key = self._keys[number]
            if number not in self._given[case] and (key not in best or match.score > best[key].score):
                best[key] = match._replace(sentence=number)
        short = [key for key, match in best.items() if self._sentences.length(match.sentence) < SHORT_WORDS]
        if len([key for key in best if key[0] == case]) < 2:
            best = {key: match for key, match in best.items() if key not in short}
        return [_criterion(case, key, match) for key, match in sorted(best.items())]

    def names_in(self, case: str, text: str) -> list[Sign]:
        """Names of rubric files, and the dataset's names and addresses, but for those that the task gives itself."""
        found = dict.fromkeys(
            Sign(kind, f"“{name}”")
            for reading in readings(text)
            for kind, name in _names(reading)
            if name.casefold() not in self._given_names[case]
        )
        return list(found)

    def directed_lines(self, case: str, text: str) -> list[int]:
        """Lines (from 1) of a submission's text that speak to whoever evaluates it and are not the start's own."""
        return [number for number, line in _spoken(text) if line.strip() not in self._given_lines[case]]

    def _matches(self, case: str, text: str) -> Iterator[tuple[int, Match]]:
        for reading in _all_readings(text):
            found = words(reading)
            for match in self._own[case].verbatim(found):
                yield self._own_numbers[case][match.sentence], match
            for match in self._sentences.near(found):
                yield match.sentence, match._replace(kind="verbatim" if match.score == 1.0 else "near")


def _spoken(text: str) -> list[tuple[int, str]]:
    listed = text.splitlines()
    return [(number, listed[number - 1]) for number in speaking_lines(_TALK_OF_PROMPTS.sub(" ", text))]


def _all_readings(text: str, depth: int = 0) -> Iterator[str]:
    """The text, without escapes and tags, and what base64 or hex blocks in it hold."""
    yield from readings(text)
    if "<" in text:
        yield without_tags(text)
    for _, content in encoded_blocks(text) if depth < 2 else ():
        for inner in as_text(content) or ():
            yield from _all_readings(inner, depth + 1)


def _parts(criterion: str) -> list[tuple[bool, str]]:
    """A criterion as a whole, and each long sentence of it where it has several."""
    sentences = [part for part in _SENTENCE_END.split(criterion) if len(words(part)) >= SENTENCE_WORDS]
    return [(True, criterion), *((False, part) for part in sentences if part != criterion)]


def _names(text: str) -> Iterator[tuple[Kind, str]]:
    for kind, pattern in _NAMES:
        for match in pattern.finditer(text):
            yield kind, " ".join(match.group().split())[:60]


def _criterion(case: str, key: Key, match: Match) -> Sign:
    of_case, index = key
    whose = "" if of_case == case else f" of {of_case}"
    kind: Kind = "criterion_verbatim" if match.kind == "verbatim" else "criterion_near"
    how = "word for word" if match.kind == "verbatim" else f"{match.score:.2f} of its words"
    return Sign(kind, f"criterion {index}{whose}, {how}")
