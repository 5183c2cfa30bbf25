"""File names of a release: found under Unicode NFC, kept as they are stored, and twins told apart.

An archive made on macOS stores `é` as two characters (NFD) where JSON and HTML have one (NFC).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from bench.errors import DataError


def nfc(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def find_name(wanted: str, names: Iterable[str]) -> str | None:
    """The stored name that `wanted` means: the same characters, else the only one that is equal under NFC.

    None when there is none. Raises DataError when several are equal under NFC only, so that none is the one meant.
    """
    stored = list(names)
    if wanted in stored:
        return wanted
    alike = [name for name in stored if nfc(name) == nfc(wanted)]
    if len(alike) > 1:
        raise DataError(f"{wanted!r} could be any of {[ascii(name) for name in alike]}; name it as it is stored")
    return alike[0] if alike else None


def nfc_twins(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups of different names that are equal under NFC, each in the order given."""
    groups: dict[str, dict[str, None]] = {}
    for name in names:
        if not name.isascii():
            groups.setdefault(nfc(name), {})[name] = None
    return [tuple(group) for group in groups.values() if len(group) > 1]


def twins_told(archive: str, twins: Iterable[tuple[str, ...]]) -> list[str]:
    """One line for people about each group of twins."""
    return [
        f"{archive}: collision: {' and '.join(ascii(name) for name in group)} differ only in Unicode normalisation; "
        "all are kept, and each must be named exactly as it is stored"
        for group in twins
    ]
