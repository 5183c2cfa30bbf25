"""What a judge is told of a request's attachments: their digests, their pictures, the files a model can take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judge_desk import Desk
from PIL import Image

from evaluator.judges.model.conversation import shrunk
from evaluator.judges.model.fences import Fence
from evaluator.judges.model.opening import Opening
from evaluator.judges.model.sources import Sources

PDF = b"%PDF-1.4 not read here"


@pytest.fixture
def opening(desk: Desk, tmp_path: Path) -> Any:
    """The opening of a case with one PDF, whose digest has words and a page, for a model that takes `native`."""

    def make(vision: bool, native: list[str]) -> list[dict[str, Any]]:
        desk.settings = {"vision": vision, "native": native}
        exhibits = desk.exhibits()
        (exhibits.start / "_attachments/policy.pdf").write_bytes(PDF)
        kept = tmp_path / "digests/policy"
        kept.mkdir(parents=True, exist_ok=True)
        (kept / "digest.md").write_text("# What is in policy.pdf\n\nMeals are paid up to 40.\n")
        (kept / "digest.json").write_text('{"pictures": [{"file": "page-1.png", "caption": "page 1"}]}')
        Image.new("RGB", (60, 80)).save(kept / "page-1.png")
        facts = {"path": "_attachments/policy.pdf", "kind": "document", "bytes": len(PDF), "sha256": "0"}
        attachment = desk.case.attachments[0].model_copy(update=facts)
        case = desk.case.model_copy(update={"attachments": [attachment]})
        told = replace(exhibits, case=case, digests={attachment.path: kept})
        return Opening(told, Sources(told.submission, told.start), Fence(), desk.chat()).parts

    return make


def texts(parts: list[dict[str, Any]]) -> str:
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


def test_the_digest_s_words_and_pictures_stand_for_what_the_model_cannot_take(opening: Any) -> None:
    parts = opening(vision=True, native=[])
    assert "Meals are paid up to 40." in texts(parts)
    assert "Picture: _attachments/policy.pdf, page 1" in texts(parts)
    assert [part["type"] for part in parts].count("image_url") == 1


def test_a_model_that_takes_the_file_gets_it_beside_the_words_and_without_the_pages(opening: Any) -> None:
    parts = opening(vision=True, native=["pdf"])
    assert "Meals are paid up to 40." in texts(parts)
    [file] = [part for part in parts if part["type"] == "file"]
    assert file["file"]["file_data"].startswith("data:application/pdf;base64,JVBERi0xLjQg")
    assert "image_url" not in [part["type"] for part in parts]


def test_without_vision_there_are_words_only(opening: Any) -> None:
    parts = opening(vision=False, native=["pdf"])
    assert {part["type"] for part in parts} == {"text"}
    assert "Meals are paid up to 40." in texts(parts)


def test_a_conversation_that_must_shrink_drops_the_file_and_keeps_its_words(opening: Any) -> None:
    [message] = shrunk([{"role": "user", "content": opening(vision=True, native=["pdf"])}])
    assert {part["type"] for part in message["content"]} == {"text"}
    assert "Meals are paid up to 40." in texts(message["content"])
