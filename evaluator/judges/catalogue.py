"""Which judge or refuter a `--model` or `--refuter-model` name stands for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from bench.errors import UsageError
from evaluator.judges.judge import Advocacy, Judge, Refuter
from evaluator.judges.model.chat import Chat
from evaluator.judges.model.settings import Caps, read_settings
from evaluator.judges.recorded import RecordedJudge

_BARE = re.compile(r"[a-z][a-z0-9.-]*(\[1m\])?", re.IGNORECASE)
"""A model's name without a provider, as the command line takes it."""
FORMS = (
    "`recorded`, PROVIDER/MODEL (openai/…, anthropic/…, any provider litellm knows), a bare name such as `opus` "
    "(claude-cli), a judge's YAML file, or relay:FOLDER"
)


class Judges(NamedTuple):
    """Who judges and who attacks. No refuter: mechanical probes only. A model that judges without one is its
    own where a submission speaks to its evaluator (`only_flagged`)."""

    judge: Judge
    refuter: Refuter | None


def find_judges(
    model: str,
    refuter_model: str | None = None,
    *,
    witnesses: Path | None = None,
    vision: bool = True,
    caps: Caps | None = None,
    digests: Path | None = None,
    samples: int = 1,
    advocate: float = 0.0,
) -> Judges:
    """The judge for `model`, and the refuter where one is asked for. Nothing is called yet.

    `recorded` needs no model; `witnesses` is its folder of recorded witnesses. `digests`: words about the
    attachments, CASE.md each, beside those of `cdb prepare`. `advocate`: the share of FAILs that get one.
    Raises UsageError for a name that stands for nothing.
    """
    if digests and not digests.is_dir():
        raise UsageError(f"--digests {digests} is no folder; give the one that holds CASE.md files")
    if witnesses and model != "recorded":
        raise UsageError("--witnesses goes with --model recorded")
    if samples > 1 and model == "recorded":
        raise UsageError("--samples goes with a model: recorded witnesses say the same each time")
    if model == "recorded" and not refuter_model:
        return Judges(_recorded(witnesses), None)
    from evaluator.judges.model.judge import ModelJudge
    from evaluator.judges.model.ledger import Ledger
    from evaluator.judges.model.refuter import ModelRefuter

    ledger = Ledger(caps or Caps())
    judge: Judge
    if model == "recorded":
        judge = _recorded(witnesses)
    else:
        chat = find_chat(model, vision=vision)
        judge = ModelJudge(_name(model), chat, ledger, digests, samples, Advocacy(advocate))
        if not refuter_model:
            return Judges(judge, ModelRefuter(chat, ledger, digests, only_flagged=True))
    refuter = ModelRefuter(find_chat(refuter_model, vision=vision), ledger, digests) if refuter_model else None
    return Judges(judge, refuter)


def find_chat(name: str, *, vision: bool = True) -> Chat:
    """The model behind a name: `relay:FOLDER`, PROVIDER/MODEL, a bare name, or a YAML file. Raises UsageError."""
    if name.startswith("relay:"):
        from evaluator.judges.model.relay import RelayChat

        if not name.removeprefix("relay:"):
            raise UsageError("relay needs a folder for its requests: relay:FOLDER")
        return RelayChat(Path(name.removeprefix("relay:")), vision=vision)
    settings = read_settings(name)
    if not vision:
        settings = settings.model_copy(update={"vision": False})
    if "/" in settings.model:
        from evaluator.judges.model.litellm_chat import LiteLlmChat

        return LiteLlmChat(settings)
    if not _BARE.fullmatch(settings.model):
        raise UsageError(f"no judge for model {name!r}; there are: {FORMS}")
    from evaluator.judges.model.claude_cli.chat import ClaudeCliChat

    return ClaudeCliChat(settings)


def _name(model: str) -> str:
    """What stands behind a name that `find_chat` knows."""
    if model.startswith("relay:"):
        return "relay"
    return "litellm" if "/" in read_settings(model).model else "claude-cli"


def _recorded(witnesses: Path | None) -> RecordedJudge:
    if witnesses is None:
        return RecordedJudge()
    if not any(witnesses.glob("*/witnesses.json")):
        raise UsageError(f"--witnesses {witnesses} holds no CASE/witnesses.json")
    return RecordedJudge(witnesses)
