"""A release is checked before anything is extracted, and each fault has its own message."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_archives import EVALUATION, PROJECT, SOLVER, tiny_release

from bench.checksums import file_faults
from bench.errors import DataError
from bench.release import extract, open_release, verify_files


def test_a_good_release_is_extracted_whole_and_apart(tmp_path: Path) -> None:
    release = tiny_release(tmp_path / "release")
    solver, evaluation = extract(open_release(release), tmp_path / "work")
    assert (solver / PROJECT / "index.html").read_text() == "<p>hi</p>"
    assert os.readlink(solver / PROJECT / "also.html") == "index.html"
    assert evaluation.stat().st_mode & 0o777 == 0o700
    assert extract(open_release(release), tmp_path / "work") == (solver, evaluation)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda b: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git-LFS pointer"),
        (lambda b: b"version https://hawser.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git-LFS pointer"),
        (lambda b: b"/annex/objects/SHA256E-s9--0.tar.gz\n", "git-annex pointer"),
        (lambda b: b"# xet version 0\n", "Xet pointer"),
        (lambda b: b"<html>Log in</html>", "web page"),
        (lambda b: b"", "is empty"),
        (lambda b: b[: len(b) // 2], "truncated"),
        (lambda b: b[:-1], "truncated"),
        (lambda b: b[:40] + bytes([b[40] ^ 1]) + b[41:], "sha256"),
        (lambda b: b[:-4] + bytes([b[-4] ^ 1]) + b[-3:], "sha256"),
        (lambda b: b[: len(b) // 2] + bytes(len(b) - len(b) // 2), "sha256|truncated"),  # set aside, never filled
        (lambda b: b + b"x", "sha256"),
        (lambda b: b"Invalid username or password.", "sha256"),
    ],
)
@pytest.mark.parametrize("name", [SOLVER, EVALUATION])
def test_c7_pointer_truncation_and_flipped_byte_have_their_own_messages(
    tmp_path: Path, spoil: Callable[[bytes], bytes], message: str, name: str
) -> None:
    folder = tiny_release(tmp_path / "release")
    (folder / name).write_bytes(spoil((folder / name).read_bytes()))
    with pytest.raises(DataError, match=f"{name}.*{message}"):
        extract(open_release(folder), tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_c7_a_flipped_bit_anywhere_is_never_called_a_truncation_nor_a_cut_a_change(tmp_path: Path) -> None:
    folder = tiny_release(tmp_path / "release")
    release, whole = open_release(folder), (folder / SOLVER).read_bytes()

    def told(content: bytes) -> str:
        (folder / SOLVER).write_bytes(content)
        (fault,) = file_faults(release)[1]
        return fault.message

    flips = [told(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]) for at in range(len(whole) - 4)]
    assert [message for message in flips if "does not match" not in message] == []
    cuts = [told(whole[:length]) for length in range(12, len(whole))]
    assert len([message for message in cuts if "truncated" not in message]) <= 2, "a cut may end like a whole tar"


@pytest.mark.parametrize("name", ["manifest.json", "SHA256SUMS"])
def test_c7_a_pointer_in_place_of_what_everything_hangs_on_is_told(tmp_path: Path, name: str) -> None:
    folder = tiny_release(tmp_path / "release")
    (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(DataError, match=f"{name} is a Git-LFS pointer.*git lfs pull"):
        verify_files(open_release(folder))


@pytest.mark.parametrize("name", [SOLVER, EVALUATION, "manifest.json"])
def test_a_file_missing_from_the_sums_is_noticed(tmp_path: Path, name: str) -> None:
    folder = tiny_release(tmp_path / "release")
    sums = folder / "SHA256SUMS"
    sums.write_text("".join(line for line in sums.read_text().splitlines(True) if name not in line))
    with pytest.raises(DataError, match=f"does not list {name}"):
        verify_files(open_release(folder))


def test_sums_are_read_as_sha256sum_writes_them(tmp_path: Path) -> None:
    folder = tiny_release(tmp_path / "release")
    text = (folder / "SHA256SUMS").read_text()
    for other in (text.replace("  ", " *"), text.replace("  ", "  ./"), text.replace("\n", "\r\n"), "\ufeff" + text):
        (folder / "SHA256SUMS").write_text(other)
        assert len(verify_files(open_release(folder))) == 3


@pytest.mark.parametrize(
    "line",
    ["nonsense", "0" * 63 + "  x", "z" * 64 + "  x", "0" * 64, "0" * 64 + "  /etc/passwd", "0" * 64 + "  ../x"],
)
def test_a_line_that_is_none_is_named_by_its_number(tmp_path: Path, line: str) -> None:
    folder = tiny_release(tmp_path / "release")
    with (folder / "SHA256SUMS").open("a") as sums:
        sums.write(line + "\n")
    with pytest.raises(DataError, match="SHA256SUMS, line 4"):
        file_faults(open_release(folder))


def test_a_release_of_links_into_a_download_cache_is_good(tmp_path: Path) -> None:
    folder = tiny_release(tmp_path / "release")
    (tmp_path / "blobs").mkdir()
    for path in list(folder.iterdir()):
        path.rename(tmp_path / "blobs" / path.name)
        path.symlink_to(f"../blobs/{path.name}")
    extract(open_release(folder), tmp_path / "work")
    (tmp_path / "blobs" / SOLVER).unlink()
    with pytest.raises(DataError, match=rf"{SOLVER} is a link to .*which does not exist"):
        verify_files(open_release(folder))


def test_every_bad_file_is_told_at_once(tmp_path: Path) -> None:
    folder = tiny_release(tmp_path / "release")
    (folder / SOLVER).write_bytes(b"")
    (folder / EVALUATION).unlink()
    with pytest.raises(DataError, match=f"(?s)2 faults.*{EVALUATION} is missing.*{SOLVER} is empty"):
        verify_files(open_release(folder))
