"""Files, pictures and lengths of time as checks read them; no browser."""

from __future__ import annotations

import io

import pytest
from PIL import Image, ImageDraw

from evaluator.replay.check_content import compare
from evaluator.replay.check_files import csv_fits, json_fits, kind_of
from evaluator.replay.likeness import likeness, read_picture, thumbnail, thumbnails_alike
from evaluator.replay.readings import first_duration
from evaluator.witness import WitnessError, load_witness
from evaluator.witness.checks import CompareCheck, CsvContent, JsonContent

TABLE = b'\xef\xbb\xbfName;Age;Town\r\n"Ruiz; Ana";31;Faro\r\nBo;4;\r\n'


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        ({"columns": ["Name", "Age"]}, True),
        ({"columns": ["Age", "Name"]}, False),
        ({"columns": ["Name", "Street"]}, False),
        ({"rows": {"equals": 2}}, True),
        ({"rows": {"at_least": 3}}, False),
        ({"row_contains": ["Ruiz; Ana", "31"]}, True),
        ({"row_contains": ["Bo", "31"]}, False),
    ],
)
def test_a_table_is_read_with_its_separator_quotes_and_byte_order_mark(wanted: dict, holds: bool) -> None:
    assert csv_fits(TABLE, CsvContent(**wanted)) == (holds, "columns Name, Age, Town and 2 rows")


@pytest.mark.parametrize("content", [b"", b"\n\n", b'a,b\n"open'])
def test_what_is_no_table_holds_nothing(content: bytes) -> None:
    assert csv_fits(content, CsvContent(rows={"at_least": 0}))[0] is False


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        ({"at": "items.1.n", "equals": 4}, True),
        ({"at": "items.1.n", "equals": "2 + 2"}, True),
        ({"at": "items.1.n", "equals": "5"}, False),
        ({"at": "items.0.name", "equals": "Ana"}, True),
        ({"at": "items.0.done", "equals": True}, True),
        ({"at": "items.1.n", "equals": True}, False),
        ({"at": "items", "count": {"equals": 2}}, True),
        ({"at": "items.0.name", "count": {"equals": 3}}, False),
        ({"at": "items.7"}, False),
        ({"at": "gone.0"}, False),
        ({"contains": "Ana"}, True),
    ],
)
def test_a_value_in_json_is_found_by_its_path(wanted: dict, holds: bool) -> None:
    content = b'{"items": [{"name": "Ana", "done": true}, {"n": 4}]}'
    assert json_fits(content, JsonContent(**wanted))[0] is holds


@pytest.mark.parametrize("content", [b"{", b"", b"[" * 100_000])
def test_what_is_no_json_holds_nothing(content: bytes) -> None:
    assert json_fits(content, JsonContent(at="a"))[0] is False


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"\x89PNG\r\n\x1a\n", "png"), (b"%PDF-1.7", "pdf"), (b"PK\x03\x04", "zip"), (b"RIFF....WAVE", "wav"),
     (b"\0\0\0 ftypisom", "mp4"), (b"<?xml?><svg>", "svg"), (b"a,b\n", "other"), (b"", "other")],
)  # fmt: skip
def test_a_files_kind_is_told_by_its_first_bytes(content: bytes, kind: str) -> None:
    assert kind_of(content) == kind


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:42", 42),
        ("Part 1 · 1:02:03", 3723),
        ("90 s", 90),
        ("1 h 5 min", 3900),
        ("2.5 hours", 9000),
        ("none", None),
    ],
)
def test_the_first_length_of_time(text: str, seconds: float | None) -> None:
    assert first_duration(text) == seconds


def drawn(size: tuple[int, int] = (200, 100), colour: str = "red", *, shift: int = 0) -> Image.Image:
    picture = Image.new("RGB", size, "white")
    w, h = size
    ImageDraw.Draw(picture).ellipse((w * 0.1 + shift, h * 0.2, w * 0.3 + shift, h * 0.6), fill=colour)
    return picture


def png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def test_likeness_goes_by_what_is_drawn_and_not_by_the_ground() -> None:
    assert likeness(drawn(), drawn()) == 1
    assert likeness(drawn(), drawn((400, 200))) > 0.9
    assert likeness(drawn(), Image.new("RGB", (200, 100), "white")) < 0.01
    assert likeness(drawn(), drawn(shift=90)) < 0.05
    assert likeness(drawn(), drawn(colour="blue")) < 0.7
    assert likeness(Image.new("RGB", (9, 9), "#808080"), Image.new("RGB", (9, 9), "#828282")) > 0.8
    assert likeness(Image.new("RGB", (9, 9), "black"), Image.new("RGB", (9, 9), "white")) == 0


def test_thumbnails_tell_pictures_and_sizes_apart() -> None:
    one = thumbnail(png(drawn()))
    assert one.startswith("200x100:")
    assert thumbnails_alike(one, thumbnail(png(drawn()))) == 1
    assert thumbnails_alike(one, thumbnail(png(drawn((200, 140))))) == 0
    with pytest.raises(ValueError, match="no picture that can be read"):
        read_picture(b"GIF89a and no more")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"expect": "each", "target": {"css": "a"}, "what": "style", "same": True}, "property goes with"),
        ({"expect": "changed", "target": {"css": "a"}, "what": "text", "tolerance": 3}, "tolerance goes with"),
        ({"expect": "image", "target": {"css": "a"}, "reference": "https://x.invalid/a.png", "at_least": 1}, "inside the application"),
        ({"expect": "image", "target": {"css": "a"}, "region": {"x": 0.6, "width": 0.5}, "of": {"css": "b"}, "at_most": 1}, "beyond"),
        ({"expect": "box", "target": {"css": "a"}, "gap": {"equals": 3}}, "gap and of"),
        ({"expect": "clipboard", "equals": "x"}, "field after: is missing"),
        ({"do": "emulate"}, "at least one of color_scheme"),
        ({"do": "click", "target": {"css": "a", "within": {"css": "b"}, "frame": "iframe"}}, "put it into within"),
        ({"expect": "count", "target": {"css": "a"}, "equals": "2 ** 3"}, "joined by"),
        ({"expect": "download", "csv": {}}, "at least one of columns"),
    ],
)  # fmt: skip
def test_new_words_are_refused_with_their_reason(step: dict, message: str) -> None:
    with pytest.raises(WitnessError, match=message):
        load_witness({"schema": "cdb.witness/1", "steps": [step, {"expect": "console_clean"}]})


def test_what_is_made_of_an_input_is_put_in_and_arithmetic_may_divide() -> None:
    made = load_witness(
        {
            "schema": "cdb.witness/1", "inputs": {"name": " Bo ", "n": "0"},
            "steps": [
                {"expect": "text", "target": {"css": "a"}, "equals": "${name|upper} ${name|trim} ${name|length}"},
                {"expect": "count", "target": {"css": "a"}, "equals": "6 / ${n}"},
            ],
        }
    ).with_inputs({"n": "3"})  # fmt: skip
    assert (made.steps[0].equals, made.steps[1].equals) == (" BO  Bo 4", "6 / 3")
    with pytest.raises(WitnessError, match=r"\$\{who\} is neither an input"):
        load_witness(
            {
                "schema": "cdb.witness/1",
                "steps": [{"expect": "text", "target": {"css": "a"}, "equals": "${who|upper}"}],
            }
        )


@pytest.mark.parametrize(
    ("left", "relation", "right", "holds"),
    [
        ("2026-03-01", "equals", "2026-02-02", False),  # no arithmetic: both come to 2022
        ("2026-03-01", "equals", "2026-03-01", True),
        ("555-1234", "not_equals", "555-1235", True),
        ("40 / 20", "equals", "60 / 30", True),
        ("-3 + 5", "greater", "1", True),
        ("Order 12", "contains", "12", True),
        ("12 plants", "starts_with", "12", True),
        ("3", "less", "three", False),
    ],
)
def test_two_values_are_compared_as_numbers_only_where_both_are(
    left: str, relation: str, right: str, holds: bool
) -> None:
    assert compare(CompareCheck(expect="compare", left=left, relation=relation, right=right)).holds is holds
