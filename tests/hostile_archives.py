"""Tiny releases made on the spot, and what an attacker may put into their archives.

`TRICKS` are single members (or a few) that must be refused; the strategies draw whole archives: names, link graphs,
sizes and damage, in no particular taste.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

SOLVER, EVALUATION = "solve_norubric.tar.gz", "eval_withrubric.tar.gz"
PROJECT = "cases/one/project"
END = bytes(1024)


class Packed(NamedTuple):
    """A member as it goes into the tar: its header and what follows it."""

    info: tarfile.TarInfo
    content: bytes = b""


def member(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "", *, size: int | None = None,
    mode: int = 0o644, pax: dict[str, str] | None = None,
) -> Packed:  # fmt: skip
    """`size` may lie; `pax` headers win over the plain ones."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    info.size = len(content) if size is None else size
    info.pax_headers = pax or {}
    return Packed(info, content)


def link(name: str, target: str) -> Packed:
    return member(name, kind=tarfile.SYMTYPE, link=target)


def hard_link(name: str, target: str) -> Packed:
    return member(name, kind=tarfile.LNKTYPE, link=target)


GOOD = [
    member("./", kind=tarfile.DIRTYPE),
    member(f"{PROJECT}/index.html", b"<p>hi</p>"),
    link(f"{PROJECT}/also.html", "index.html"),
    member("cases/one/user_queries.json", b'[{"text": "x"}]'),
]


def tar_bytes(members: Iterable[Packed], end: bytes = END) -> bytes:
    """The tar itself, written header by header: tarfile's own writer would mend some of the lies."""
    parts = []
    for info, content in members:
        parts += [info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"), content, bytes(-len(content) % 512)]
    return b"".join(parts) + end


def tiny_release(folder: Path, *more: Packed, raw: bytes | None = None, good: Sequence[Packed] = GOOD) -> Path:
    """A release of one case `one`, both archives alike. `raw` is the gzip file to use instead of a packed one."""
    folder.mkdir(parents=True)
    packed = gzip.compress(tar_bytes([*good, *more]), 1) if raw is None else raw
    manifest = {"name": "Tiny", "version": "1", "case_ids": ["one"], "counts": {"tasks": 1, "criteria": 1}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for name in (SOLVER, EVALUATION):
        (folder / name).write_bytes(packed)
    write_sums(folder)
    return folder


def write_sums(folder: Path) -> None:
    """SHA256SUMS of what lies there now: whatever was spoiled has the right checksum."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(folder).as_posix()}\n" for p in files]
    (folder / "SHA256SUMS").write_text("".join(lines))


NFC, NFD = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")

TRICKS: dict[str, tuple[list[Packed], str]] = {
    "climbs": ([member("../outside", b"x")], "outside"),
    "climbs from within": ([member("cases/../../outside", b"x")], "outside"),
    "climbs and stays": ([member(f"{PROJECT}/a/../b", b"x")], r"\.\."),
    "absolute": ([member("/tmp/absolute", b"x")], "absolute"),
    "two slashes": ([member("//tmp/absolute", b"x")], "absolute"),
    "absolute by pax": ([member("plain", b"x", pax={"path": "/tmp/absolute"})], "absolute"),
    "climbs by pax": ([member("plain", b"x", pax={"path": "cases/../../outside"})], "outside"),
    "absolute folder": ([member("/tmp/absolute/", kind=tarfile.DIRTYPE)], "absolute"),
    "link out": ([link(f"{PROJECT}/out", "../../../../etc/passwd")], "out of its application"),
    "link to the rubric": ([link(f"{PROJECT}/out", "../rubric.json")], "out of its application"),
    "link to the next case": ([link(f"{PROJECT}/out", "../../two/project/index.html")], "out of its application"),
    "absolute link": ([link(f"{PROJECT}/abs", "/etc/passwd")], "absolute link"),
    "link by pax": ([member(f"{PROJECT}/l", kind=tarfile.SYMTYPE, link="x", pax={"linkpath": "/etc"})], "absolute link"),
    "link over a link": ([link(f"{PROJECT}/d/l", "."), link(f"{PROJECT}/d/m", "l/../../..")], "out of its application"),
    "links in a circle": ([link(f"{PROJECT}/l", "m"), link(f"{PROJECT}/m", "l")], "circle"),
    "link to itself": ([link(f"{PROJECT}/l", "l")], "circle"),
    "link to nothing": ([link(f"{PROJECT}/l", "")], "no path"),
    "link with a newline": ([link(f"{PROJECT}/l", "a\nb")], "no path"),
    "project is a link": ([link("cases/two/project", "../one/project")], "outside of an application"),
    "request is a link": ([link("cases/two/user_queries.json", "../one/user_queries.json")], "outside of an app"),
    "link at the top": ([link("latest", "cases")], "outside of an application"),
    "file through a link": ([link(f"{PROJECT}/l", "."), member(f"{PROJECT}/l/x", b"x")], "which is no folder"),
    "folder over a link": ([link(f"{PROJECT}/l", "."), member(f"{PROJECT}/l/", kind=tarfile.DIRTYPE)], "twice"),
    "link over a folder": ([member(f"{PROJECT}/d/x", b"x"), link(f"{PROJECT}/d", "..")], "twice"),
    "hard link out": ([hard_link(f"{PROJECT}/hard", "../../../../etc/passwd")], "hard link"),
    "absolute hard link": ([hard_link(f"{PROJECT}/hard", f"/{PROJECT}/index.html")], "hard link"),
    "hard link to a link": ([hard_link(f"{PROJECT}/hard", f"{PROJECT}/also.html")], "hard link"),
    "hard link to what comes later": ([hard_link(f"{PROJECT}/h", f"{PROJECT}/z"), member(f"{PROJECT}/z", b"")], "hard"),
    "hard link with content": ([member(f"{PROJECT}/h", b"x", tarfile.LNKTYPE, f"{PROJECT}/index.html")], "carries"),
    "FIFO": ([member(f"{PROJECT}/pipe", kind=tarfile.FIFOTYPE)], "FIFO"),
    "character device": ([member(f"{PROJECT}/device", kind=tarfile.CHRTYPE)], "device"),
    "block device": ([member(f"{PROJECT}/disk", kind=tarfile.BLKTYPE)], "device"),
    "unknown kind": ([member(f"{PROJECT}/odd", kind=b"Z")], "unknown kind"),
    "file twice": ([member(f"{PROJECT}/twice", b"a"), member(f"{PROJECT}/twice", b"b")], "twice"),
    "file twice, said otherwise": ([member(f"{PROJECT}/t", b"a"), member(f"{PROJECT}/./t", b"b")], "twice"),
    "good file again": ([member(f"{PROJECT}/index.html", b"b")], "twice"),
    "file below a file": ([member(f"{PROJECT}/index.html/below", b"x")], "which is no folder"),
    "folder over a file": ([member(f"{PROJECT}/index.html/", kind=tarfile.DIRTYPE)], "twice"),
    "file over a folder": ([member(PROJECT, b"x")], "twice"),
    "file called like a folder": ([member(f"{PROJECT}/name/", b"x", b"0")], "name of one"),
    "file called dot": ([member(".", b"x")], "name of one"),
    "newline": ([member(f"{PROJECT}/new\nline", b"x")], "control character"),
    "escape sequence": ([member(f"{PROJECT}/\x1b[2J", b"x")], "control character"),
    "NUL": ([member("plain", b"x", pax={"path": f"{PROJECT}/a\0b"})], "control character"),
    "long name": ([member(f"{PROJECT}/{'n' * 256}", b"x")], "255 bytes"),
    "long path": ([member(PROJECT + "/" + "/".join(["n" * 200] * 11), b"x")], "longer than"),
    "deep path": ([member(PROJECT + "/d" * 120, b"x")], "levels"),
    "volume label": ([member("label", kind=b"V")], "unknown kind"),
    "folder called like our card": ([member("dataset.json/x", b"x")], "written by extraction"),
    "hard link to itself": ([hard_link(f"{PROJECT}/me", f"{PROJECT}/me")], "hard link"),
    "hard link to a folder": ([hard_link(f"{PROJECT}/me", PROJECT)], "hard link"),
    "too many links in a row": ([link(f"{PROJECT}/l{n}", f"l{n + 1}") for n in range(50)], "circle"),
    "links that double": ([link(f"{PROJECT}/l{n}", f"l{n + 1}/l{n + 1}") for n in range(60)], "circle"),
    "link too long": ([link(f"{PROJECT}/l", "a/" * 2500)], "cannot hold"),
    "NEL": ([member(f"{PROJECT}/a\u0085b", b"x")], "control character"),
    "size in hexadecimal": ([member(f"{PROJECT}/n", b"x" * 16, pax={"size": "0x10"})], "size"),
    "our own card": ([member("dataset.json", b"{}")], "written by extraction"),
    "size that is negative": ([member(f"{PROJECT}/n", b"", pax={"size": "-512"})], "size|seek|damaged"),
    "size that is no number": ([member(f"{PROJECT}/n", b"", pax={"size": "9" * 5000})], "size|cannot be read"),
    "size far too large": ([member(f"{PROJECT}/n", b"", size=1 << 60)], "size"),
    "size beyond the end": ([member(f"{PROJECT}/n", b"x", size=4096)], "cannot be read to its end"),
    "sparse": ([member(f"{PROJECT}/s", b"", pax={"GNU.sparse.major": "1", "GNU.sparse.minor": "0",
                "GNU.sparse.name": f"{PROJECT}/s", "GNU.sparse.realsize": str(1 << 40)})], "sparse|cannot be read"),
    "old sparse": ([member(f"{PROJECT}/s", b"", tarfile.GNUTYPE_SPARSE)], "sparse|cannot be read"),
    "a case more": ([member("cases/two/project/index.html", b"x")], "manifest does not name|two"),
}  # fmt: skip
"""Name → what is added to `GOOD`, and a pattern of what the refusal says."""

_SEGMENTS = [
    "a",
    "b",
    "A",
    "d",
    NFC,
    NFD,
    "中文",
    "sp ace",
    "-rf",
    "$(id)",
    "..",
    ".",
    "",
    "x\n",
    "\\",
    "a\udcff",
    "n" * 300,
]
_KINDS = [
    tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE,
    tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.GNUTYPE_SPARSE, b"Z",
]  # fmt: skip
_SIZES = [0, 1, 511, 512, 513, 1024, 5000]

paths = st.lists(st.sampled_from(_SEGMENTS), min_size=1, max_size=4).map("/".join)
"""A relative path in which anything may happen."""


@st.composite
def hostile_members(draw: Callable[..., Any]) -> Packed:
    """Any member: mostly below the project, with any kind, target and size."""
    prefix = draw(st.sampled_from([f"{PROJECT}/"] * 8 + ["", "/", "../", "cases/", "cases/one/", "cases/two/"]))
    kind = draw(st.sampled_from(_KINDS[:6] * 3 + _KINDS[6:]))
    content = b""
    if kind in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE):
        content = draw(st.binary(min_size=1, max_size=3)) * draw(st.sampled_from(_SIZES))
    target = draw(st.sampled_from(["", "/", f"{PROJECT}/", "../"])) + draw(paths)
    lie = draw(st.sampled_from([0] * 12 + [-1, 1, 512, 1 << 40]))
    size = max(0, len(content) + lie)
    is_link = kind in (tarfile.SYMTYPE, tarfile.LNKTYPE)
    return member(prefix + draw(paths), content, kind, target if is_link else "", size=size,
                  mode=draw(st.sampled_from([0o644, 0o755, 0o6777, 0])))  # fmt: skip


@st.composite
def damage(draw: Callable[..., Any]) -> Callable[[bytes], bytes]:
    """What happens to the tar on its way: nothing, mostly; a cut, a changed byte, a repeated or dropped block."""
    kind = draw(st.sampled_from(["none"] * 5 + ["cut", "change", "repeat", "drop"]))
    at, bit = draw(st.floats(0, 1, exclude_max=True)), draw(st.integers(1, 255))

    def spoil(tar: bytes) -> bytes:
        place = int(at * len(tar))
        block = place // 512 * 512
        match kind:
            case "cut":
                return tar[:place]
            case "change":
                return tar[:place] + bytes([tar[place] ^ bit]) + tar[place + 1 :]
            case "repeat":
                return tar[: block + 512] + tar[block:]
            case "drop":
                return tar[:block] + tar[block + 512 :]
        return tar

    return spoil


@st.composite
def good_members(draw: Callable[..., Any]) -> list[Packed]:
    """A tree as real applications have it: any characters but control ones, links that stay inside, hard links."""
    letters = st.characters(blacklist_categories=("Cc", "Cs"), blacklist_characters="/\0")
    names = st.text(letters, min_size=1, max_size=12).filter(lambda n: n not in (".", "..") and len(n.encode()) < 200)
    tree = draw(st.dictionaries(st.tuples(names, names), st.binary(max_size=2000), max_size=8))
    folders = {folder for folder, _ in tree}
    found = [
        member(f"{PROJECT}/f-{folder}", kind=tarfile.DIRTYPE) for folder in sorted(folders) if draw(st.booleans())
    ]
    for (folder, name), content in tree.items():
        found.append(
            member(f"{PROJECT}/f-{folder}/{name}", content, mode=draw(st.sampled_from([0o600, 0o700, 0o4755])))
        )
    for number, (folder, name) in enumerate(tree):
        if draw(st.booleans()):
            found.append(link(f"{PROJECT}/link-{number}", f"./f-{folder}/../f-{folder}/{name}"))
        if draw(st.booleans()):
            found.append(hard_link(f"{PROJECT}/hard-{number}", f"{PROJECT}/f-{folder}/{name}"))
    return found
