"""A digest is made once, the same every time, in a process that may die; a damaged cache is mended."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.errors import InfraError
from bench.media import digest as making
from bench.media.digest import digest_of, keep_digest
from bench.media.settings import Settings
from bench.tree import digest, list_tree

SAMPLE = Path(__file__).parents[3] / "harness/sample/cases"
ATTACHMENTS = sorted(path for path in SAMPLE.glob("*/project/_attachments/*"))
Make = Callable[..., Any]


@pytest.mark.parametrize("path", ATTACHMENTS, ids=lambda path: path.name)
def test_the_same_file_gives_the_same_bytes_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    trees = []
    for number in "12":
        monkeypatch.setenv("CDB_CACHE", str(tmp_path / number))
        made = digest_of(path, Settings())
        trees.append(list_tree(made.folder))
        assert made.sha256 == digest(trees[-1])
    assert len(trees[0]) >= 2
    assert trees[0] == trees[1]


def test_it_is_made_once_and_mended_when_damaged(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ATTACHMENTS[-2]
    first = digest_of(path, Settings())
    picture = next(one for one in first.folder.iterdir() if one.name.startswith(("picture", "page", "frame")))
    with monkeypatch.context() as patched:
        patched.setattr(making, "_run", lambda *_: pytest.fail("it is in the cache"))
        assert digest_of(path, Settings()) == first
    picture.write_bytes(b"broken")
    assert digest_of(path, Settings()) == first
    (first.folder / "more.txt").write_text("more")
    assert digest_of(path, Settings()) == first
    (first.folder / "digest.json").write_text("{")
    assert digest_of(path, Settings()) == first
    assert [one.name for one in (cache / "digests").iterdir()] == [first.folder.name]


def test_other_settings_or_content_or_name_make_another(made: Make, tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("one")
    one = made(path)
    path.write_text("two")
    assert made(path).sha256 != one.sha256
    path.write_text("one")
    assert made(path).sha256 == one.sha256
    assert made(path, text_chars=2).sha256 != one.sha256
    shutil.copy(path, tmp_path / "other.txt")
    assert made(tmp_path / "other.txt").text.startswith("# What is in other.txt\n")


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGSEGV, "its reader crashed (SIGSEGV)"), (signal.SIGXCPU, "more than 300 s of computing")],
)
def test_a_reader_that_dies_leaves_a_digest_that_says_so(
    cache: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    real = making._run

    def run(path: Path, scratch: Path, pictures: Path, settings: Settings) -> Any:
        real(path, scratch, pictures, settings)
        (pictures / "half.jpg").write_bytes(b"half")
        return making._Ended(-number, "")

    monkeypatch.setattr(making, "_run", run)
    folder = digest_of(ATTACHMENTS[0], Settings()).folder
    assert said in (folder / "digest.md").read_text()
    assert sorted(one.name for one in folder.iterdir()) == ["digest.json", "digest.md"]


def test_the_limit_of_computing_time_really_stops_a_reader(made: Make, tmp_path: Path) -> None:
    (tmp_path / "board.mp4").write_bytes(next(p for p in ATTACHMENTS if p.suffix == ".mp4").read_bytes())
    digest = made(tmp_path / "board.mp4", cpu_s=0)
    assert digest.summary["unread"] == ["all of it: reading it took more than 0 s of computing"]


def test_the_limit_of_memory_is_named_not_suffered(made: Make, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (9000, 9000)).save(tmp_path / "large.png")
    digest = made(tmp_path / "large.png", memory_bytes=400 * 1024 * 1024)
    assert digest.summary["unread"] == ["all of it: it needs more memory than a digest may take"]


def test_a_reader_that_cannot_start_is_the_machines_trouble(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "_run", lambda *_: making._Ended(1, "No module named av"))
    with pytest.raises(InfraError, match="No module named av"):
        digest_of(ATTACHMENTS[0], Settings())
    assert list((cache / "digests").iterdir()) == []


def test_a_link_is_not_followed(made: Make, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the secret of this machine")
    (tmp_path / "link.txt").symlink_to(tmp_path / "secret.txt")
    digest = made(tmp_path / "link.txt")
    assert digest.summary["unread"] == ["all of it: it is a link, which is not followed"]
    assert "secret of" not in digest.text


def test_a_reader_gets_no_key(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: dict[str, Any] = {}
    real = making.subprocess.run

    def run(command: list[str], **how: Any) -> Any:
        seen.update(how["env"])
        return real(command, **how)

    monkeypatch.setenv("ANTHROPIC_API_KEY", "the-real-key")
    monkeypatch.setattr(making.subprocess, "run", run)
    (tmp_path / "note.txt").write_text("x")
    digest_of(tmp_path / "note.txt", Settings())
    assert "PYTHONPATH" in seen
    assert "the-real-key" not in seen.values()


def test_names_of_any_kind_are_written_down_safely(made: Make, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode("a \xe9\n中.txt".encode() + b"\xff")
    path.write_text("x")
    digest = made(path)
    assert "## Text\n\nx\n" in digest.text


def test_a_kept_digest_is_replaced_when_it_is_another(cache: Path, tmp_path: Path) -> None:
    path, target = tmp_path / "note.txt", tmp_path / "kept" / "note"
    path.write_text("one")
    first = keep_digest(path, Settings(), target)
    (target / "digest.md").write_text("changed by hand")
    assert keep_digest(path, Settings(), target) == first == digest(list_tree(target))
