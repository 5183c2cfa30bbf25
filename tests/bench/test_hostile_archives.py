"""C4: whatever an archive holds, nothing is written outside, and the result is whole or absent."""

from __future__ import annotations

import gzip
import os
import re
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from hostile_archives import (
    END,
    GOOD,
    NFC,
    NFD,
    PROJECT,
    SOLVER,
    TRICKS,
    Packed,
    damage,
    good_members,
    hard_link,
    hostile_members,
    link,
    member,
    tar_bytes,
    tiny_release,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.archive_rules import Caps
from bench.errors import DataError
from bench.release import extract, open_release

drawn = settings(
    max_examples=int(os.environ.get("CDB_EXAMPLES", "150")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@contextmanager
def guarded() -> Iterator[Path]:
    """A folder in which everything but `work/` must be the same afterwards."""
    with tempfile.TemporaryDirectory() as name, patch("os.sync"):  # a flush of the machine's disks for each example
        room = Path(name) / "a" / "b"
        room.mkdir(parents=True)
        (room / "outside").write_text("untouched")
        yield room
        left = {p.relative_to(name).as_posix() for p in Path(name).rglob("*")}
        assert {p for p in left if not p.startswith(("a/b/work", "a/b/release"))} == {"a", "a/b", "a/b/outside"}
        assert (room / "outside").read_text() == "untouched"
        assert not Path("/tmp/absolute").exists()


def whole_or_absent(room: Path, members: list[Packed]) -> bool:
    """Extracts; whether it succeeded. What there is then is a tree of plain nodes that holds every file given."""
    work = room / "work"
    try:
        extract(open_release(room / "release"), work)
    except DataError as error:
        assert re.search(r"(solve_norubric|eval_withrubric)\.tar\.gz", str(error))
        assert list(work.iterdir()) == [], "something was left"
        return False
    root = work / "solver-inputs"
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode), path
        if stat.S_ISLNK(mode):
            assert Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root / PROJECT)), path
        else:
            assert stat.S_IMODE(mode) in (0o755, 0o644), path
    for info, content in members:
        if info.type == tarfile.AREGTYPE and info.name.endswith("/"):
            assert (root / info.name).is_dir()  # so a folder was written before tar knew folders
        elif info.isreg():
            assert (root / info.name).read_bytes() == content
            assert bool((root / info.name).stat().st_mode & 0o111) == bool(info.mode & 0o100)
        elif info.issym():
            assert os.readlink(root / info.name) == info.linkname
    return True


@given(members=st.lists(hostile_members(), max_size=6), spoil=damage())
@drawn
def test_c4_any_archive_is_extracted_whole_or_not_at_all(members: list[Packed], spoil: object) -> None:
    with guarded() as room:
        tar = spoil(tar_bytes([*GOOD, *members]))  # type: ignore[operator]
        tiny_release(room / "release", raw=gzip.compress(tar, 1))
        honest = tar == tar_bytes([*GOOD, *members]) and all(m.info.size == len(m.content) for m in members)
        expected = [*GOOD, *members] if honest else []
        whole_or_absent(room, expected)


@given(members=good_members())
@drawn
def test_c4_any_good_archive_comes_out_as_it_went_in(members: list[Packed]) -> None:
    with guarded() as room:
        tiny_release(room / "release", *members)
        assert whole_or_absent(room, [*GOOD, *members])
        for info, _ in members:
            if info.islnk():
                first, again = (room / "work/solver-inputs" / name for name in (info.linkname, info.name))
                assert first.read_bytes() == again.read_bytes()
                assert first.stat().st_ino != again.stat().st_ino


@given(cut=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 255))
@drawn
def test_a_damaged_gzip_stream_is_refused_even_under_a_right_checksum(cut: float, bit: int) -> None:
    with guarded() as room:
        packed = bytearray(gzip.compress(tar_bytes(GOOD), 1))
        place = int(cut * len(packed))
        packed[place:] = packed[place + 1 :] if bit == 0 else bytes([packed[place] ^ bit]) + packed[place + 1 :]
        tiny_release(room / "release", raw=bytes(packed))
        whole_or_absent(room, GOOD)


@pytest.mark.parametrize("trick", TRICKS)
def test_c4_every_trick_is_refused_by_name_and_nothing_is_left(trick: str) -> None:
    members, message = TRICKS[trick]
    with guarded() as room:
        tiny_release(room / "release", *members)
        with pytest.raises(DataError, match=message) as caught:
            extract(open_release(room / "release"), room / "work")
        assert SOLVER in str(caught.value)
        assert "again" in str(caught.value), "no remedy"
        assert list((room / "work").iterdir()) == []


def test_c4_good_links_and_hard_links_are_kept(tmp_path: Path) -> None:
    more = [
        member(f"{PROJECT}/src/", kind=tarfile.DIRTYPE),
        link(f"{PROJECT}/src/up.html", "../index.html"),
        link(f"{PROJECT}/src/there", "up.html"),
        link(f"{PROJECT}/bin", "./src/."),
        link(f"{PROJECT}/not-yet", "node_modules/.bin/vite"),
        hard_link(f"{PROJECT}/copy.html", f"./{PROJECT}/index.html"),
    ]
    solver, _ = extract(open_release(tiny_release(tmp_path / "release", *more)), tmp_path / "work")
    project = solver / PROJECT
    assert (project / "bin/there").read_text() == "<p>hi</p>" == (project / "copy.html").read_text()
    assert os.readlink(project / "not-yet") == "node_modules/.bin/vite"


def bomb(content_bytes: int) -> bytes:
    """A gzip of one member of zeros, made without holding it."""
    import io

    info = member(f"{PROJECT}/zeros", size=content_bytes).info
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as packed:
        packed.write(tar_bytes(GOOD, end=b"") + info.tobuf(tarfile.PAX_FORMAT))
        for _ in range(content_bytes // 65536):
            packed.write(bytes(65536))
        packed.write(END)
    return out.getvalue()


@pytest.mark.parametrize(
    ("caps", "message"),
    [
        (Caps(free_bytes=1_000_000), "unpacks to more than"),
        (Caps(bytes=1_000_000), "unpacks to more than 1000000 bytes"),
        (Caps(file_bytes=1_000_000), "gives its size"),
        (Caps(members=3), "more than 3 members"),
    ],
)
def test_c4_a_bomb_is_stopped_by_each_cap_long_before_the_disk_is_full(
    tmp_path: Path, caps: Caps, message: str
) -> None:
    tiny_release(tmp_path / "release", raw=bomb(32 * 65536 * 8))
    with pytest.raises(DataError, match=message):
        extract(open_release(tmp_path / "release"), tmp_path / "work", caps)
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize(
    ("more", "caps", "message"),
    [
        (
            [hard_link(f"{PROJECT}/h{n}", f"{PROJECT}/big") for n in range(50)],
            Caps(free_bytes=3_000_000),
            "hard links",
        ),
        ([member(f"{PROJECT}/{n}/" + "d/" * 40 + "x", b"") for n in range(10)], Caps(members=300), "more than 300"),
        ([member(f"{PROJECT}/{n}" + "n" * 200, b"") for n in range(60)], Caps(names_bytes=9000), "names are longer"),
    ],
)
def test_c4_what_multiplies_while_it_is_unpacked_is_counted(
    tmp_path: Path, more: list[Packed], caps: Caps, message: str
) -> None:
    tiny_release(tmp_path / "release", member(f"{PROJECT}/big", bytes(100_000)), *more)
    with pytest.raises(DataError, match=message):
        extract(open_release(tmp_path / "release"), tmp_path / "work", caps)
    assert list((tmp_path / "work").iterdir()) == []


def test_c4_headers_cannot_fill_the_memory(tmp_path: Path) -> None:
    huge = member(f"{PROJECT}/n", b"", pax={"comment": "c" * 3_000_000})
    tiny_release(tmp_path / "release", huge)
    with pytest.raises(DataError, match="headers of one member"):
        extract(open_release(tmp_path / "release"), tmp_path / "work")


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (b"", "no end marker"),
        (b"\x01" * 512 + END, "damaged header"),
        (END + tar_bytes([member("hidden", b"x")]), "follows its end marker"),
    ],
)
def test_an_archive_ends_where_it_says(tmp_path: Path, end: bytes, message: str) -> None:
    tiny_release(tmp_path / "release", raw=gzip.compress(tar_bytes(GOOD, end=end)))
    with pytest.raises(DataError, match=message):
        extract(open_release(tmp_path / "release"), tmp_path / "work")


@pytest.mark.parametrize(
    "raw", [b"", b"PK\x03\x04 no gzip", gzip.compress(b"", mtime=0), gzip.compress(b"no tar at all" * 99, mtime=0)]
)
def test_what_is_no_tar_gz_is_said_so(tmp_path: Path, raw: bytes) -> None:
    tiny_release(tmp_path / "release", raw=raw)
    with pytest.raises(DataError, match=rf"{SOLVER} (cannot be read to its end|is empty).*again"):
        extract(open_release(tmp_path / "release"), tmp_path / "work")


def test_c2_names_equal_under_nfc_only_are_both_kept_and_reported(tmp_path: Path) -> None:
    more = [member(f"{PROJECT}/_attachments/{name}.mp3", name.encode()) for name in (NFC, NFD)]
    said: list[str] = []
    release = open_release(tiny_release(tmp_path / "release", *more))
    solver, _ = extract(release, tmp_path / "work", progress=said.append)
    kept = {path.name: path.read_text() for path in (solver / PROJECT / "_attachments").iterdir()}
    assert kept == {f"{NFC}.mp3": NFC, f"{NFD}.mp3": NFD}
    assert len(said) == 2
    assert all("collision" in line and r"\u0301" in line and r"\xe9" in line for line in said)
    again: list[str] = []
    extract(release, tmp_path / "work", progress=again.append)
    assert again == said, "a second call says it too"


def test_c4_twins_that_the_file_system_would_merge_are_refused(tmp_path: Path) -> None:
    """Two names that the disk takes for one, as on macOS and Windows: the disk is played by folding names."""
    tiny_release(tmp_path / "release", member(f"{PROJECT}/Logo.PNG", b"1"), member(f"{PROJECT}/logo.png", b"2"))
    real = os.open

    def folding(path: object, flags: int, *more: int, **named: int) -> int:
        place = Path(os.fspath(path))  # type: ignore[call-overload]
        return real(place.with_name(place.name.lower()), flags, *more, **named)

    with patch("bench.unpack.os.open", folding), pytest.raises(DataError, match=r"logo\.png.*earlier member"):
        extract(open_release(tmp_path / "release"), tmp_path / "work")
    assert list((tmp_path / "work").iterdir()) == []
