"""Finds given sentences in long texts, word for word or nearly so, in one pass over the words.

Both are normalised first: Unicode NFKC, case, white space, punctuation and invisible characters; words that a line
break hyphenated are joined; each Chinese, Japanese or Korean character counts as a word. A sentence is *verbatim*
where its letters and digits stand in a row, whatever stands between them. It is *near* where, within a window of
1.6 times its length, at least `NEAR` of its words stand in its order (longest common subsequence) and at least
`PAIRS` of its pairs of neighbouring words: the second condition keeps texts apart that merely share words.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

NEAR = 0.8
PAIRS = 0.5
WINDOW = 1.6
MIN_WORDS = 8
"""Shorter sentences are looked for verbatim only."""
MIN_LETTERS = 14
"""Sentences with fewer letters are not looked for: they stand in many a text by chance. A CJK character counts 3."""
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ff]"
)
_HYPHENATED = re.compile(r"(?<=\w)[-\u2010]\r?\n\s*(?=\w)")
_SHORT_RUN = re.compile(rf"[{_CJK}]")


class Match(NamedTuple):
    """Which sentence (its place in the list) and how well: 1.0 is verbatim, else the share of its words."""

    sentence: int
    kind: str
    score: float


class Sentences:
    """What is looked for. `verbatim_words`: fewest words for which standing verbatim counts."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self._words = [words(sentence) for sentence in sentences]
        self._joined = ["".join(found) for found in self._words]
        self._pairs: dict[tuple[str, str], list[int]] = {}
        for number, found in enumerate(self._words):
            if len(found) >= MIN_WORDS and self.is_looked_for(number):
                for pair in set(itertools.pairwise(found)):
                    self._pairs.setdefault(pair, []).append(number)

    def is_looked_for(self, sentence: int) -> bool:
        """False for a sentence too short to tell anything."""
        joined = self._joined[sentence]
        return len(joined) + 2 * len(_SHORT_RUN.findall(joined)) >= MIN_LETTERS

    def length(self, sentence: int) -> int:
        """Its number of words."""
        return len(self._words[sentence])

    def verbatim(self, found: list[str]) -> Iterator[Match]:
        """Sentences whose letters stand in a row in a text, given as its `words`."""
        joined = "".join(found)
        for number, wanted in enumerate(self._joined):
            if self.is_looked_for(number) and wanted in joined:
                yield Match(number, "verbatim", 1.0)

    def near(self, found: list[str]) -> Iterator[Match]:
        """Sentences that stand nearly so in a text, each with its best score; verbatim ones come out as 1.0."""
        hits: dict[int, list[tuple[int, tuple[str, str]]]] = {}
        known = self._pairs.get
        for at, pair in enumerate(itertools.pairwise(found)):
            for number in known(pair, ()):
                hits.setdefault(number, []).append((at, pair))
        for number, places in hits.items():
            if score := self._best(number, places, found):
                yield Match(number, "near", score)

    def _best(self, number: int, places: list[tuple[int, tuple[str, str]]], found: list[str]) -> float:
        """The best score of any window that begins at a shared pair; 0 when none is near."""
        wanted = self._words[number]
        width = int(len(wanted) * WINDOW) + 1
        needed = PAIRS * len(set(itertools.pairwise(wanted)))
        best = 0.0
        for first, (start, _) in enumerate(places):
            inside: set[tuple[str, str]] = set()
            for at, pair in places[first:]:
                if at >= start + width:
                    break
                inside.add(pair)
            if len(inside) < needed:
                continue
            begin = max(0, start - len(wanted) // 3)  # its first words may be the changed ones
            score = LCSseq.similarity(wanted, found[begin : start + width]) / len(wanted)
            best = max(best, score)
        return round(best, 3) if best >= NEAR else 0.0


def words(text: str) -> list[str]:
    """The normalised words of a text, in order."""
    plain = _HYPHENATED.sub("", text)
    if not plain.isascii():
        plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", plain))
    return _WORD.findall(plain.casefold())
