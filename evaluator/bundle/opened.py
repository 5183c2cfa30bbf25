"""A bundle opened for checking: an archive unpacked by the rules for those from outside, or a folder as it lies."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from bench.errors import DataError, UsageError
from bench.strict_json import read_json
from bench.tree import Entry, differences, list_tree, path_bytes, target_bytes
from bench.tree_links import why_refused
from bench.unpack import unpack
from evaluator.bundle.findings import Findings
from evaluator.bundle.layout import CAPS, CARD, BundleCard, tree_of


@contextmanager
def opened(bundle: Path) -> Iterator[Path]:
    """The bundle's folder, the caller's own or a temporary one.

    Raises DataError, naming the member, for an archive that holds what no bundle may, UsageError for no bundle.
    """
    if bundle.is_dir():
        yield bundle.resolve()
    elif bundle.is_file():
        with tempfile.TemporaryDirectory(prefix="cdb-verify-") as room:
            folder = Path(room).resolve() / "bundle"
            folder.mkdir()
            unpack(bundle, folder, CAPS, tree_of, any_name=True)
            yield folder
    else:
        raise UsageError(f"{bundle} does not exist; pass a bundle, or the folder it was unpacked into")


def check_members(found: Findings, digest_wanted: str | None) -> tuple[BundleCard | None, str]:
    """Compare everything that lies there with bundle.json; gives it (None when it cannot be read) and the digest.

    Raises DataError for what makes it unsafe to read on: links that lead out, special files.
    """
    here = [entry for entry in list_tree(found.folder) if path_bytes(entry) != CARD.encode()]
    _refuse_links(here)
    card = _card(found)
    whole = card.own_digest() if card else "unknown"
    if digest_wanted and digest_wanted.removeprefix("sha256:") != whole.removeprefix("sha256:"):
        found.fault("the whole", f"its digest is {whole}, not the {digest_wanted} that was published")
    if card is not None:
        for line in differences(card.members, here):
            kind, _, path = line.partition(": ")
            found.fault(path, f"{kind} since the bundle was made ({CARD})")
        if card.digest != whole:
            found.fault(CARD, "its digest is not that of all else in it")
    return card, whole


def _card(found: Findings) -> BundleCard | None:
    path = found.folder / CARD
    if not path.is_file():
        if not (found.folder / "results").is_dir():
            raise UsageError(f"{found.folder} holds neither {CARD} nor results/; it is no bundle")
        found.fault(CARD, "it is missing")
        return None
    try:
        card = BundleCard.model_validate(read_json(path))
        for entry in card.members:
            path_bytes(entry)
        return card
    except ValidationError as error:
        first = error.errors()[0]
        found.fault(CARD, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
    except (DataError, KeyError, ValueError) as error:
        found.fault(CARD, f"it cannot be read: {error}")
    return None


def _refuse_links(entries: list[Entry]) -> None:
    by_tree: dict[str, dict[str, str]] = {}
    for entry in entries:
        if entry["mode"] == "link":
            path = path_bytes(entry).decode("utf-8", "surrogateescape")
            folder = tree_of(path)
            if folder is None:
                raise DataError(f"{path!r} is a link outside of an application: no bundle has that, nothing was read")
            target = target_bytes(entry).decode("utf-8", "surrogateescape")
            by_tree.setdefault(folder, {})[path[len(folder) + 1 :]] = target
    for folder, links in by_tree.items():
        for link in links:
            if why := why_refused(link, links):
                raise DataError(f"{f'{folder}/{link}'!r}: {why}; no bundle has that, and nothing was read")
