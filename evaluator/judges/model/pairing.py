"""A blind pair put to a model: two unlabelled pictures, one question, in a conversation that knows nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from evaluator.judges.model.chat import Chat, ToolSpec, picture_part, text_part
from evaluator.judges.model.conversation import Conversation, Finish
from evaluator.judges.model.fences import Fence
from evaluator.judges.model.ledger import Purse
from evaluator.judges.model.pictures import fit
from evaluator.judges.model.prompts import render
from evaluator.judges.model.toolbox import Output, Toolbox, ToolInput, tool
from evaluator.pairs import Choice, Chosen
from evaluator.records import Usage


class ChoiceInput(ToolInput):
    choice: Choice = Field(description="which picture fulfils it")
    reason: str = Field(min_length=1, max_length=2000)


_CHOOSE = ToolSpec(
    "choose",
    "Which picture fulfils the sentence. Ends the conversation.",
    tool("choose", "", ChoiceInput, lambda _i: Output()).spec.parameters,
)


def choose(
    chat: Chat, purse: Purse, sentence: str, pictures: tuple[bytes, bytes], *, label: str, folder: Path
) -> tuple[Chosen, Usage]:
    """Show two pictures in this order. Raises JudgeError, OutOfBudget, PictureError."""
    talk: Conversation[Chosen] = Conversation(
        chat, purse, Toolbox([], Fence(), folder), Finish(_CHOOSE, _taken), label=label, folder=folder
    )
    parts: list[dict[str, Any]] = [text_part(render("pair_task", sentence=sentence))]
    for name, picture in zip(("First", "Second"), pictures, strict=True):
        shown = folder / f"{name.lower()}.jpg"
        shown.parent.mkdir(parents=True, exist_ok=True)
        shown.write_bytes(picture)
        parts += [text_part(f"{name} picture:"), picture_part(fit(shown), "image/jpeg")]
    return talk.hold(render("pair"), parts), talk.usage


def _taken(given: dict[str, Any], _last: bool) -> Chosen:
    found = ChoiceInput.model_validate(given)
    return Chosen(found.choice, found.reason)
