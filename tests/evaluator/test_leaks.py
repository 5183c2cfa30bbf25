"""No criterion's text reaches a solver, however it is written down; what merely shares words raises no alarm."""

from __future__ import annotations

import base64
import bz2
import gzip
import html
import io
import json
import lzma
import quopri
import struct
import subprocess
import tarfile
import textwrap
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image, PngImagePlugin

from bench.errors import UsageError
from evaluator.leaks import LeakReport, Search, find_leaks, is_named_like_a_rubric
from evaluator.rubric import Criterion
from evaluator.sample_release import make_sample_release

SECRET = "Choosing “Oldest first” re-orders the visible bookings and keeps the selected filter – even after a reload."
CHINESE = "切换为深色主题后,页面所有文字保持清晰可读,并且刷新后仍然生效"
OTHER = "The monthly total counts approved expenses only and shows two decimals."
RUBRICS = {
    "alpha": (Criterion(1, "a1", SECRET), Criterion(2, "a2", CHINESE)),
    "beta": (Criterion(1, "b1", OTHER),),
}
PROSE = "Bookings are listed on the page with a filter above them. Choose a room, then a day. " * 3


def look(tmp_path: Path, files: dict[str, bytes | str], case: str = "alpha") -> LeakReport:
    laid = []
    for name, content in files.items():
        path = tmp_path / "case" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        laid.append((f"cases/{case}/{name}", path))
    return Search(RUBRICS).report(iter(laid))


def found(report: LeakReport) -> set[tuple[str, str, int]]:
    return {(hit.file, hit.criterion_case, hit.criterion_index) for hit in report.hits}


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def png(**info: str) -> bytes:
    texts = PngImagePlugin.PngInfo()
    for key, text in info.items():
        texts.add_itxt(key, text, zip=True)
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, "PNG", pnginfo=texts)
    return buffer.getvalue()


def jpeg_with_exif() -> bytes:
    image, buffer = Image.new("RGB", (4, 4)), io.BytesIO()
    exif = Image.Exif()
    exif[0x9C9C] = SECRET.encode("utf-16-le")
    image.save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def pdf(text: str, note: str = "") -> bytes:
    """A page whose text is deflated, as every program writes it; a note, if any, in UTF-16."""
    plain = text.replace("“", '"').replace("”", '"').replace("–", "-").replace("(", "").replace(")", "")
    lines = [plain[at : at + 40] for at in range(0, len(plain), 40)]
    drawn = "BT /F1 9 Tf 20 700 Td 11 TL " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
    stream = zlib.compress(drawn.encode())
    contents = ("\ufeff" + note).encode("utf-16-be").hex()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Annots [6 0 R]"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(stream) + stream + b"\nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Annot /Subtype /Text /Rect [0 0 9 9] /Contents <" + contents.encode() + b"> >>",
    ]
    body, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    table = b"xref\n0 7\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return body + table + b"trailer << /Size 7 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(body)


def id3(text: str) -> bytes:
    """An ID3v2.3 comment in UTF-16 before a few silent MP3 frames."""
    comment = b"\x01eng\xff\xfe\0\0" + text.encode("utf-16")
    frame = b"COMM" + struct.pack(">I", len(comment)) + b"\0\0" + comment
    size = len(frame)
    synchsafe = bytes((size >> shift) & 0x7F for shift in (21, 14, 7, 0))
    return b"ID3\x03\0\0" + synchsafe + frame + (b"\xff\xfb\x90\x64" + b"\0" * 413) * 8


LETTER = SECRET.encode()
HIDDEN: dict[str, tuple[str, bytes]] = {
    "plain": ("a.txt", PROSE.encode() + LETTER + PROSE.encode()),
    "other quotes, case, spaces": ("a.md", SECRET.upper().replace("“", '"').replace(" ", " \t\n").encode()),
    "full-width letters": ("a.txt", "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in SECRET).encode()),
    "soft hyphens": ("a.txt", "\u00ad".join(SECRET).encode()),
    "a comment over many lines": ("a.js", "".join(f"// {word}\n" for word in SECRET.split()).encode()),
    "hyphenated": ("a.txt", SECRET.replace("re-orders", "re-\n   orders").replace("bookings", "book-\nings").encode()),
    "minified": ("a.js", (f"var a={json.dumps(PROSE)};" * 200 + f"b={json.dumps(SECRET)}").encode()),
    "concatenated": ("a.js", ('"' + '"+\n"'.join(SECRET[i : i + 7] for i in range(0, len(SECRET), 7)) + '"').encode()),
    "camel case": ("a.js", f"const {''.join(w.title() for w in SECRET.split())} = 1".encode()),
    "HTML": ("a.html", "".join(f"<b>{c}</b>" for c in SECRET[:60]).encode() + html.escape(SECRET[60:]).encode()),
    "entities": ("a.html", "".join(f"&#{ord(c)};" for c in SECRET).encode()),
    "entities of entities": ("a.html", html.escape("".join(f"&#x{ord(c):x};" for c in SECRET)).encode()),
    "folded by a mail program": ("a.eml", quopri.encodestring(LETTER)),
    "a calendar's lines": ("a.ics", "\r\n ".join(SECRET[at : at + 60] for at in range(0, 120, 60)).encode()),
    "rich text": ("a.rtf", "".join(c if c.isascii() else f"\\u{ord(c)}?" for c in SECRET).encode()),
    "numbered lines": ("a.txt", "".join(f"{n:4} {word}\n" for n, word in enumerate(textwrap.wrap(SECRET, 40))).encode()),
    "JSON escapes": ("a.json", ("".join(f"\\u{ord(c):04x}" for c in SECRET)).encode()),
    "JSON in JSON": ("a.json", json.dumps(json.dumps({"a": SECRET})).encode()),
    "percent": ("a.txt", quote(SECRET, safe="").encode()),
    "UTF-8 with a mark": ("a.txt", b"\xef\xbb\xbf" + LETTER),
    "UTF-16": ("a.txt", SECRET.encode("utf-16")),
    "UTF-16 without a mark": ("a.txt", SECRET.encode("utf-16-be")),
    "UTF-32": ("a.txt", SECRET.encode("utf-32")),
    "Windows letters": ("a.txt", ("é" + SECRET).encode("cp1252")),
    "base64": ("a.js", b'atob("' + base64.b64encode(LETTER) + b'")'),
    "base64 in lines": ("a.txt", base64.encodebytes(LETTER)),
    "base64 of UTF-16": ("a.txt", base64.b64encode(SECRET.encode("utf-16-le"))),
    "base64 of base64": ("a.txt", base64.b64encode(base64.b64encode(LETTER))),
    "data URL of a gzip": ("a.html", b'<a href="data:;base64,' + base64.b64encode(gzip.compress(LETTER)) + b'">'),
    "hex": ("a.txt", LETTER.hex().encode()),
    "gzip": ("a.gz", gzip.compress(LETTER)),
    "bzip2": ("a.bz2", bz2.compress(LETTER)),
    "xz": ("a.xz", lzma.compress(LETTER)),
    "zip": ("a.zip", zipped({"inner/b.txt": LETTER})),
    "zip in tar in gzip": ("a.tgz", gzip.compress(tarred("b.zip", zipped({"c.txt": LETTER})))),
    "a member's name": ("a.zip", zipped({f"{SECRET}.txt": b""})),
    "docx in runs": (
        "a.docx",
        zipped({"word/document.xml": "".join(f"<w:r><w:t>{SECRET[i:i+5]}</w:t></w:r>" for i in range(0, 110, 5)).encode()}),
    ),
    "xlsx": ("a.xlsx", zipped({"xl/sharedStrings.xml": f"<sst><si><t>{html.escape(SECRET)}</t></si></sst>".encode()})),
    "old office file": ("a.doc", b"\xd0\xcf\x11\xe0" + bytes(400) + SECRET.encode("utf-16-le") + bytes(400)),
    "packed PNG text": ("a.png", png(Comment=SECRET)),
    "behind a PNG's end": ("a.png", png() + LETTER),
    "EXIF": ("a.jpg", jpeg_with_exif()),
    "PDF page": ("a.pdf", pdf(SECRET)),
    "PDF note": ("a.pdf", pdf("Nothing here.", SECRET)),
    "MP3 tag": ("a.mp3", id3(SECRET)),
    "a binary": ("a.bin", bytes(range(256)) * 9 + LETTER + bytes(range(256))),
    "text that is called a picture": ("a.png", LETTER),
}  # fmt: skip


@pytest.mark.parametrize("how", HIDDEN)
def test_a_criterion_is_found_however_it_is_written_down(tmp_path: Path, how: str) -> None:
    name, content = HIDDEN[how]
    report = look(tmp_path, {f"project/{name}": content})
    assert found(report) == {(f"project/{name}", "alpha", 1)}, report
    assert report.not_read == ()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "gbk"])
def test_a_chinese_criterion_is_found_in_the_encodings_it_is_written_in(tmp_path: Path, encoding: str) -> None:
    text = "说明文件:" + CHINESE.replace(",", "、") + "。完"
    report = look(tmp_path, {"project/a.txt": text.encode(encoding, "replace")})
    assert ("project/a.txt", "alpha", 2) in found(report)


CHANGED = {
    "a word left out": SECRET.replace("visible ", ""),
    "a word replaced": SECRET.replace("Choosing", "Selecting"),
    "words put in": SECRET.replace("bookings", "upcoming bookings today").replace("filter", "filter value"),
    "the end cut off": SECRET.replace(" after a reload.", ""),
    "numbered and bulleted": "3) " + SECRET.replace("re-orders", "\n - re-orders").replace(" and ", "\n - and "),
}


@pytest.mark.parametrize("how", CHANGED)
def test_a_near_duplicate_is_found_among_other_text(tmp_path: Path, how: str) -> None:
    report = look(tmp_path, {"project/notes.md": PROSE + CHANGED[how] + PROSE})
    assert found(report) == {("project/notes.md", "alpha", 1)}
    assert 0.8 <= report.hits[0].score < 1.0 or report.hits[0].kind == "verbatim"


INNOCENT = {
    "a request with the same words": "Please let me choose oldest first so that the bookings re-order, keep the filter "
    "I selected, and remember it all after a reload of the page. The visible bookings should be enough.",
    "the words in another order": " ".join(sorted(SECRET.split())),
    "code about it": "function reorder(bookings, filter) { const visible = bookings.filter(selected); "
    "return visible.sort(oldestFirst) } // even after a reload the selected filter is kept",
    "half of it": " ".join(SECRET.split()[:9]),
    "each word in a line of its own text": "\n".join(f"{word} is a word that stands here" for word in SECRET.split()),
}


@pytest.mark.parametrize("what", INNOCENT)
def test_what_merely_shares_words_raises_no_alarm(tmp_path: Path, what: str) -> None:
    text = INNOCENT[what] + " " + PROSE
    report = look(tmp_path, {"project/a.txt": text, "user_queries.json": json.dumps([{"text": text}])})
    assert report.hits == ()


def test_a_request_may_be_close_to_a_criterion_but_not_hold_a_whole_one(tmp_path: Path) -> None:
    near = json.dumps([{"text": f"{PROSE} {SECRET.replace('Choosing', 'Selecting')}"}])
    assert look(tmp_path, {"user_queries.json": near}).hits == ()
    assert found(look(tmp_path, {"user_queries.json": json.dumps([{"text": SECRET}])})) == {
        ("user_queries.json", "alpha", 1)
    }


def test_a_criterion_of_another_task_is_named_as_that_ones(tmp_path: Path) -> None:
    report = look(tmp_path, {"project/a.txt": OTHER})
    assert found(report) == {("project/a.txt", "beta", 1)}
    assert "criterion 1 of beta" in report.hits[0].line()


def test_a_hit_never_holds_the_text(tmp_path: Path) -> None:
    report = look(tmp_path, {"project/a.txt": PROSE + SECRET})
    told = json.dumps(report.as_json()) + "\n".join(report.lines())
    assert "re-orders" not in told


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("project/rubric.json", True), ("project/docs/RUBRIC.JSON", True), ("project/my-rubrics_521.csv", True),
        ("project/rubric.json.bak", True), ("project/rubric", True), ("project/rubrics/a.js", True),
        ("project/acceptance-criteria.md", True), ("project/ｒｕｂｒｉｃ.json", True), ("project/.rubric.yaml", True),
        ("project/src/RubricEditor.tsx", False), ("project/src/rubric.ts", False), ("project/criteria.js", False),
        ("project/rubricon.json", False), ("project/lubric.json", False),
    ],
)  # fmt: skip
def test_files_named_like_a_rubric(name: str, is_one: bool) -> None:
    assert is_named_like_a_rubric(f"cases/alpha/{name}") is is_one


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    report = look(
        tmp_path,
        {
            "project/a.7z": b"7z\xbc\xaf\x27\x1c" + bytes(range(100)),
            "project/b.zip": b"PK\x03\x04" + bytes(range(200)),
            "project/c.pdf": b"%PDF-1.7 and no more",
            "project/d.png": png(Comment="x")[:60] + bytes(range(100)),
        },
    )
    assert report.hits == ()
    assert {part.file for part in report.not_read} >= {"project/a.7z", "project/b.zip", "project/c.pdf"}


def test_a_bomb_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluator import text_of_files

    monkeypatch.setattr(text_of_files, "MAX_UNPACKED_BYTES", 1_000_000)
    nested = zipped({"a": bytes(900_000), "b": bytes(900_000)})
    report = look(tmp_path, {"project/bomb.zip": nested})
    assert [part.reason for part in report.not_read] == ["more unpacked data than is looked through"]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sample_release(tmp_path_factory.mktemp("release") / "sample")


def test_the_sample_release_has_no_leak(release: Path) -> None:
    report = find_leaks(release)
    assert (report.hits, report.not_read, report.too_short) == ((), (), ())
    assert (report.cases, report.criteria) == (5, 20)


RunCdb = Callable[..., "subprocess.CompletedProcess[str]"]


def test_the_verb_looks_through_a_release_or_its_extracted_folders(
    release: Path, tmp_path: Path, run_cdb: RunCdb
) -> None:
    good = run_cdb(["dataset", "verify", release, "--leaks", "--json"])
    assert (good.returncode, json.loads(good.stdout)["hits"]) == (0, []), good.stderr
    assert run_cdb(["dataset", "extract", release, "--out", tmp_path / "work"]).returncode == 0
    rubric = json.loads((tmp_path / "work/evaluation-inputs/cases/task-board/rubric.json").read_text())
    criterion = rubric["rubrics"][2]["criterion"]
    project = tmp_path / "work/solver-inputs/cases/task-board/project"
    (project / "hint.txt").write_text(criterion, encoding="utf-16")
    (project / "rubric.json").write_text("{}")
    bad = run_cdb(["dataset", "verify", tmp_path / "work", "--leaks", "--json"])
    hits = json.loads(bad.stdout)["hits"]
    assert bad.returncode == 1
    assert [(hit["file"], hit["kind"], hit["criterion_index"]) for hit in hits] == [
        ("project/hint.txt", "verbatim", 3), ("project/rubric.json", "name", 0),
    ]  # fmt: skip
    assert criterion not in bad.stdout + bad.stderr


def test_one_extracted_root_alone_is_refused_with_the_right_folder(tmp_path: Path) -> None:
    (tmp_path / "solver-inputs/cases").mkdir(parents=True)
    with pytest.raises(UsageError, match="the one above"):
        find_leaks(tmp_path / "solver-inputs")
