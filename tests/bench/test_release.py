"""A release is checked before anything is extracted, and each fault has its own message."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import DataError, UsageError
from bench.release import EVALUATION_ARCHIVE, SOLVER_ARCHIVE, extract, open_release, verify_files


def member(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(content)
    return info, content


GOOD = [
    member("cases/one/project/index.html", b"<p>hi</p>"),
    member("cases/one/project/also.html", kind=tarfile.SYMTYPE, link="index.html"),
    member("cases/one/user_queries.json", b'[{"text": "x"}]'),
]


@pytest.fixture
def make_release(tmp_path: Path) -> Callable[..., Path]:
    def make(*more: tuple[tarfile.TarInfo, bytes]) -> Path:
        folder = tmp_path / "release"
        folder.mkdir()
        for name in (SOLVER_ARCHIVE, EVALUATION_ARCHIVE):
            with tarfile.open(folder / name, "w:gz") as tar:
                for info, content in (*GOOD, *more):
                    tar.addfile(info, io.BytesIO(content) if content else None)
        manifest = {"name": "Tiny", "version": "1", "case_ids": ["one"], "counts": {"criteria": 1}}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        sums = [
            f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n"
            for n in (SOLVER_ARCHIVE, EVALUATION_ARCHIVE, "manifest.json")
        ]
        (folder / "SHA256SUMS").write_text("".join(sums))
        return folder

    return make


def test_a_good_release_is_extracted_whole_and_apart(make_release: Callable[..., Path], tmp_path: Path) -> None:
    solver, evaluation = extract(open_release(make_release()), tmp_path / "work")
    assert (solver / "cases/one/project/index.html").read_text() == "<p>hi</p>"
    assert os.readlink(solver / "cases/one/project/also.html") == "index.html"
    assert evaluation.stat().st_mode & 0o777 == 0o700
    assert extract(open_release(tmp_path / "release"), tmp_path / "work") == (solver, evaluation)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda b: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git-LFS pointer"),
        (lambda b: b[: len(b) // 2], "truncated"),
        (lambda b: b[:40] + bytes([b[40] ^ 1]) + b[41:], "sha256"),
    ],
)
def test_c7_pointer_truncation_and_flipped_byte_have_their_own_messages(
    make_release: Callable[..., Path], tmp_path: Path, spoil: Callable[[bytes], bytes], message: str
) -> None:
    folder = make_release()
    path = folder / SOLVER_ARCHIVE
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(DataError, match=f"{SOLVER_ARCHIVE}.*{message}"):
        extract(open_release(folder), tmp_path / "work")
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize(
    "hostile",
    [
        member("../outside", b"x"),
        member("cases/../../outside", b"x"),
        member("/absolute", b"x"),
        member("cases/one/project/out", kind=tarfile.SYMTYPE, link="../../../../etc/passwd"),
        member("cases/one/project/abs", kind=tarfile.SYMTYPE, link="/etc/passwd"),
        member("cases/one/project/hard", kind=tarfile.LNKTYPE, link="../../../../etc/passwd"),
        member("cases/one/project/pipe", kind=tarfile.FIFOTYPE),
        member("cases/one/project/device", kind=tarfile.CHRTYPE),
    ],
    ids=lambda pair: pair[0].name,
)
def test_c4_a_hostile_member_is_refused_by_name_and_nothing_is_left(
    make_release: Callable[..., Path], tmp_path: Path, hostile: tuple[tarfile.TarInfo, bytes]
) -> None:
    folder = make_release(hostile)
    with pytest.raises(DataError, match=hostile[0].name.rpartition("/")[2]):
        extract(open_release(folder), tmp_path / "work")
    assert list((tmp_path / "work").iterdir()) == []
    assert not (tmp_path / "outside").exists()


def test_a_file_missing_from_the_sums_is_noticed(make_release: Callable[..., Path]) -> None:
    folder = make_release()
    sums = folder / "SHA256SUMS"
    sums.write_text("".join(line for line in sums.read_text().splitlines(True) if SOLVER_ARCHIVE not in line))
    with pytest.raises(DataError, match=f"does not list {SOLVER_ARCHIVE}"):
        verify_files(open_release(folder))


def test_c8_the_wrong_folder_is_named_and_the_right_one_suggested(
    make_release: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_release()
    with pytest.raises(UsageError, match=str(folder)):
        open_release(folder.parent)
    solver, _ = extract(open_release(folder), tmp_path / "work")
    with pytest.raises(UsageError, match="extracted root"):
        open_release(solver)
