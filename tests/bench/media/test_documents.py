"""PDF, office documents, text and pictures: what a digest tells of them, whole or damaged."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

POLICY = Path(__file__).parents[3] / "harness/sample/cases/expense-report/project/_attachments/travel-policy-2026.pdf"
SKETCH = Path(__file__).parents[3] / "harness/sample/cases/podcast-player/project/_attachments/sketch.png"
Make = Callable[..., Any]
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
RELS = "http://schemas.openxmlformats.org/package/2006/relationships"


def archive(path: Path, parts: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in parts.items():
            made.writestr(name, content)
    return path


def paragraph(text: str, style: str = "") -> str:
    how = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{how}<w:r><w:t>{text}</w:t></w:r></w:p>"


def document(path: Path, body: str) -> Path:
    return archive(path, {"word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>"})


def test_a_pdf_gives_its_texts_and_pages(made: Make) -> None:
    digest = made(POLICY)
    assert digest.summary["facts"] == {"Pages": "2", "Title": "Travel expense policy 2026"}
    assert (
        "Client hospitality in total, not per guest 90.00" in digest.text.split("## Page 1")[1].split("## Page 2")[0]
    )
    assert "above 1,800.00 euros Finance director" in digest.text.split("## Page 2")[1]
    with Image.open(digest.folder / "page-01.jpg") as page:
        assert max(page.size) == 1600
    assert digest.names == ["digest.json", "digest.md", "page-01.jpg", "page-02.jpg"]


def test_a_long_pdf_says_where_it_was_cut(made: Make) -> None:
    digest = made(POLICY, page_images=1, text_chars=500)
    assert digest.summary["limits"] == [
        "text: 500 characters; it stops on page 1",
        "page pictures: the first 1 of 2",
    ]
    assert "## Page 2" not in digest.text


def encrypted_pdf(path: Path) -> Path:
    """The standard security handler with owner and user keys that fit no password."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [] /Count 0 >>",
        b"<< /Filter /Standard /V 1 /R 2 /P -44 /O <" + b"11" * 32 + b"> /U <" + b"22" * 32 + b"> >>",
    ]
    content, offsets = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        offsets.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = len(content)
    content += b"xref\n0 4\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    content += b"trailer << /Size 4 /Root 1 0 R /Encrypt 3 0 R /ID [<00><00>] >>\nstartxref\n%d\n%%%%EOF\n" % table
    path.write_bytes(content)
    return path


def test_an_encrypted_pdf_is_said_to_be_one(made: Make, tmp_path: Path) -> None:
    assert made(encrypted_pdf(tmp_path / "locked.pdf")).summary["unread"] == ["all of it: it is encrypted"]


def test_a_word_document_keeps_headings_tables_and_notes(made: Make, tmp_path: Path) -> None:
    cell = "<w:tc>{}</w:tc>"
    rows = "".join(
        f"<w:tr>{''.join(cell.format(paragraph(text)) for text in row)}</w:tr>"
        for row in (("City", "Rate"), ("Oslo", "52"))
    )
    body = (
        paragraph("Rates", "Heading2")
        + f"<w:tbl>{rows}</w:tbl><w:sdt><w:sdtContent>{paragraph('Signed')}</w:sdtContent></w:sdt>"
    )
    path = archive(
        tmp_path / "rates.docx",
        {
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/comments.xml": f"<w:comments {W}><w:comment>{paragraph('Use the new rates')}</w:comment></w:comments>",
            "word/media/image1.png": b"x",
        },
    )
    digest = made(path)
    assert "## Text\n\n## Rates\nCity\tRate\nOslo\t52\nSigned\n" in digest.text
    assert "## Comments\n\nUse the new rates\n" in digest.text
    assert digest.summary["facts"] == {"Format": "text document (docx)", "Pictures in it": "1, not shown here"}
    assert digest.summary["unread"] == []


def test_a_workbook_keeps_sheet_names_dates_and_gaps(made: Make, tmp_path: Path) -> None:
    sheet = (
        '<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="inlineStr"><is><t>Total</t></is></c></row>'
        '<row r="2"><c r="A2" s="1"><v>46143</v></c><c r="B2" t="b"><v>1</v></c><c r="C2"><f>A1+1</f><v>12.5</v></c>'
        '<c r="D2"><f>NOW()</f></c></row></sheetData></worksheet>'
    )
    path = archive(
        tmp_path / "book.xlsx",
        {
            "xl/workbook.xml": f'<workbook {R}><sheets><sheet name="May &amp; June" r:id="r1"/><sheet name="Gone" r:id="r2"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{RELS}"><Relationship Id="r1" Target="worksheets/sheet1.xml"/><Relationship Id="r2" Target="/xl/gone.xml"/></Relationships>',
            "xl/worksheets/sheet1.xml": sheet,
            "xl/sharedStrings.xml": "<sst><si><r><t>Da</t></r><r><t>te</t></r><rPh><t>x</t></rPh></si></sst>",
            "xl/styles.xml": '<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
        },
    )
    digest = made(path)
    assert digest.summary["facts"]["Sheets"] == "May & June, Gone"
    assert "## Sheet May & June\n\nDate\t\tTotal\n2026-05-01\tTRUE\t12.5\t=NOW()\n" in digest.text
    assert digest.summary["unread"][0].startswith("sheet Gone: KeyError")


def test_slides_come_in_the_order_of_the_talk_with_their_notes(made: Make, tmp_path: Path) -> None:
    slide = '<p:sld xmlns:p="p" xmlns:a="a"><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:sld>'
    rel = '<Relationships xmlns="x">{}</Relationships>'
    path = archive(
        tmp_path / "talk.pptx",
        {
            "ppt/presentation.xml": f'<p:presentation xmlns:p="p" {R}><p:sldIdLst><p:sldId r:id="b"/><p:sldId r:id="a"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": rel.format(
                '<Relationship Id="a" Target="slides/slide1.xml"/><Relationship Id="b" Target="slides/slide2.xml"/>'
            ),
            "ppt/slides/slide1.xml": slide.format("Second"),
            "ppt/slides/slide2.xml": slide.format("First"),
            "ppt/slides/_rels/slide2.xml.rels": rel.format(
                '<Relationship Id="n" Target="../notesSlides/notesSlide1.xml"/>'
            ),
            "ppt/notesSlides/notesSlide1.xml": slide.format("Say hello"),
        },
    )
    text = made(path).text
    assert (
        text.index("## Slide 1\n\nFirst")
        < text.index("## Notes of slide 1\n\nSay hello")
        < text.index("## Slide 2\n\nSecond")
    )


def test_an_open_document_keeps_headings_and_tables(made: Make, tmp_path: Path) -> None:
    content = (
        '<o:document-content xmlns:o="o" xmlns:t="t" xmlns:b="b"><o:body><o:text><t:h t:outline-level="1">Plan</t:h><t:p>Do <t:s/>it.</t:p>'
        '<b:table b:name="T1"><b:table-row><b:table-cell><t:p>a</t:p></b:table-cell><b:table-cell b:number-columns-repeated="2"><t:p>b</t:p></b:table-cell>'
        '<b:table-cell b:number-columns-repeated="16384"/></b:table-row></b:table></o:text></o:body></o:document-content>'
    )
    digest = made(archive(tmp_path / "plan.odt", {"content.xml": content}))
    assert "## Text\n\n# Plan\nDo it.\nTable T1\na\tb\tb\n" in digest.text


@pytest.mark.parametrize("name", ["bomb.docx", "bomb.bin"])
def test_a_zip_bomb_is_not_unpacked(made: Make, tmp_path: Path, name: str) -> None:
    path = archive(tmp_path / name, {"word/document.xml": b"<w>" + b" " * 300_000_000 + b"</w>"})
    assert path.stat().st_size < 400_000
    digest = made(path)
    assert digest.summary["unread"] == ["word/document.xml: Refused: it unpacks to more than 25165824 bytes"]


def test_many_parts_together_are_held_to_a_cap_too(made: Make, tmp_path: Path) -> None:
    comment = f"<w:c {W}>{paragraph('x')}<!--{' ' * 3_000_000}--></w:c>"
    parts = {f"word/header{number}.xml": comment for number in range(9)}
    body = f"<w:document {W}><w:body>{paragraph('text')}</w:body></w:document>"
    digest = made(archive(tmp_path / "many.docx", {"word/document.xml": body, **parts}), archive_bytes=10_000_000)
    assert len(digest.summary["unread"]) == 6
    assert "## Text\n\ntext\n" in digest.text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_not_expanded(made: Make, tmp_path: Path, encoding: str) -> None:
    bomb = (
        f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE w [<!ENTITY a "ha">'
        + "".join(
            f'<!ENTITY {b} "&{a};&{a};&{a};&{a};&{a};&{a};&{a};&{a};">'
            for a, b in zip("abcdefgh", "bcdefghi", strict=True)
        )
        + "]><w>&i;</w>"
    )
    digest = made(archive(tmp_path / "bomb.docx", {"word/document.xml": bomb.encode(encoding)}))
    assert "declares entities" in digest.summary["unread"][0]


def test_xml_nested_beyond_reason_costs_nothing_but_itself(made: Make, tmp_path: Path) -> None:
    deep = "<w:sdt>" * 200_000 + "</w:sdt>" * 200_000
    digest = made(document(tmp_path / "deep.docx", paragraph("before") + deep))
    assert digest.summary["kind"] in ("office", "other")
    assert "before" in digest.text or digest.summary["unread"]


@pytest.mark.parametrize("flag", [0x1, 0x9])
def test_an_encrypted_archive_is_said_to_be_one(made: Make, tmp_path: Path, flag: int) -> None:
    content = bytearray(document(tmp_path / "locked.docx", paragraph("x")).read_bytes())
    for sign, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(sign) + offset] |= flag
    (tmp_path / "locked.docx").write_bytes(content)
    assert made(tmp_path / "locked.docx").summary["unread"] == ["word/document.xml: Refused: it is encrypted"]


def test_an_old_or_password_protected_office_file_is_named(made: Make, tmp_path: Path) -> None:
    (tmp_path / "old.docx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 4096)
    assert "encrypted, or in an office format" in made(tmp_path / "old.docx").summary["unread"][0]


def test_a_photo_is_turned_as_its_exif_says_and_made_smaller(made: Make, tmp_path: Path) -> None:
    photo = Image.new("RGB", (4000, 3000), "white")
    photo.paste("red", (0, 0, 4000, 500))
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "A wall\0"
    photo.save(tmp_path / "photo.jpg", exif=exif)
    digest = made(tmp_path / "photo.jpg")
    with Image.open(digest.folder / "picture.jpg") as copy:
        assert copy.size == (1200, 1600)
        right, left = copy.getpixel((1190, 800)), copy.getpixel((10, 800))
        assert isinstance(right, tuple) and isinstance(left, tuple)
        assert right[1] < 60 and left[1] > 200
    assert "ImageDescription: A wall\n" in digest.text
    assert digest.summary["facts"]["Turned"] == "as its EXIF orientation says"


def test_a_small_picture_is_kept_byte_for_byte(made: Make) -> None:
    digest = made(SKETCH)
    assert (digest.folder / "picture.png").read_bytes() == SKETCH.read_bytes()
    assert digest.summary["facts"] == {"Format": "PNG", "Size": "760 × 860 pixels"}


def png_of(width: int, height: int) -> bytes:
    """A PNG that claims a size, with hardly any content."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


def test_a_picture_of_huge_dimensions_is_not_decoded(made: Make, tmp_path: Path) -> None:
    (tmp_path / "huge.png").write_bytes(png_of(60_000, 60_000))
    digest = made(tmp_path / "huge.png")
    assert digest.summary["limits"] == ["pixels: 60000 × 60000 is more than 120000000; there is no copy"]
    assert digest.names == ["digest.json", "digest.md"]


def test_a_picture_cut_short_shows_what_is_there(made: Make, tmp_path: Path) -> None:
    (tmp_path / "cut.png").write_bytes(SKETCH.read_bytes()[:20_000])
    digest = made(tmp_path / "cut.png")
    assert digest.summary["unread"][0].startswith("the end of the picture")
    assert "picture.png" in digest.names


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("é 中文\r\nnext".encode(), "é 中文\nnext"),
        ("é 中文".encode("utf-16"), "é 中文"),
        ("na\xefve caf\xe9".encode("latin-1"), "naïve café"),
    ],
)
def test_text_is_read_in_its_encoding(made: Make, tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "note.txt").write_bytes(content)
    assert f"## Text\n\n{said}\n" in made(tmp_path / "note.txt").text


def test_a_long_text_is_cut_and_says_so(made: Make, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("x" * 10_000)
    digest = made(tmp_path / "log.txt", text_chars=100)
    assert digest.summary["limits"] == ["text: the first 100 characters"]
    assert digest.text.count("x") < 150


SUFFIXES = ("mp3", "mp4", "webm", "pdf", "png", "jpg", "gif", "webp", "docx", "xlsx", "pptx", "odt", "txt", "bin")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_file_is_said_to_be_empty(made: Make, tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"empty.{suffix}").touch()
    assert made(tmp_path / f"empty.{suffix}").summary["unread"] == ["all of it: it is empty"]


@pytest.mark.parametrize("suffix", [one for one in SUFFIXES if one != "txt"])
def test_noise_under_any_name_never_raises(made: Make, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"noise.{suffix}"
    path.write_bytes(b"\xfe" + os.urandom(3000))
    digest = made(path)
    assert digest.summary["unread"] or digest.summary["facts"]
    assert str(tmp_path) not in digest.text


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_a_document_cut_short_never_raises(made: Make, tmp_path: Path, keep: float) -> None:
    whole = {
        "cut.pdf": POLICY.read_bytes(),
        "cut.docx": document(tmp_path / "w.docx", paragraph("x" * 500)).read_bytes(),
    }
    for name, content in whole.items():
        (tmp_path / name).write_bytes(content[: int(len(content) * keep)])
        digest = made(tmp_path / name)
        assert digest.summary["unread"] or "## Page 1" in digest.text


def test_a_pdf_called_something_else_is_read_as_a_pdf(made: Make, tmp_path: Path) -> None:
    (tmp_path / "policy.docx").write_bytes(POLICY.read_bytes())
    assert made(tmp_path / "policy.docx").summary["kind"] == "pdf"


def test_transparency_and_animation_survive_as_a_still(made: Make, tmp_path: Path) -> None:
    stream = io.BytesIO()
    frames = [Image.new("RGBA", (40, 30), (255, 0, 0, alpha)) for alpha in (0, 255)]
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:])
    (tmp_path / "moving.gif").write_bytes(stream.getvalue())
    digest = made(tmp_path / "moving.gif")
    assert digest.summary["facts"]["Pictures in it"] == "2; the first is shown"
    assert "picture.png" in digest.names


def test_an_archive_with_a_broken_directory_never_raises(made: Make, tmp_path: Path) -> None:
    whole = document(tmp_path / "whole.docx", paragraph("x" * 500)).read_bytes()
    start = whole.index(b"PK\x01\x02")
    for number, place in enumerate(range(start + 4, len(whole), 3)):
        if number % 6 == 0:
            (tmp_path / "broken.bin").write_bytes(whole[:place] + b"\xff\xfe\xff" + whole[place + 3 :])
            digest = made(tmp_path / "broken.bin")
            assert digest.summary["unread"] or "## Text" in digest.text or digest.summary["limits"]
