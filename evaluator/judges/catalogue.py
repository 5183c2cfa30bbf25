"""Which judge a `--model` or `--judge` name stands for."""

from __future__ import annotations

from pathlib import Path

from bench.errors import UsageError
from evaluator.judges.judge import Judge
from evaluator.judges.recorded import RecordedJudge


def find_judge(name: str, witnesses: Path | None = None) -> Judge:
    """The judge to use. `recorded` needs no model; `witnesses` is its folder of recorded witnesses.

    Raises UsageError for judges this version does not have yet.
    """
    if name == "recorded":
        if witnesses and not any(witnesses.glob("*/witnesses.json")):
            raise UsageError(f"--witnesses {witnesses} holds no CASE/witnesses.json")
        return RecordedJudge(witnesses) if witnesses else RecordedJudge()
    raise UsageError(
        f"no judge for model {name!r}: this version judges with `--model recorded` only "
        "(recorded witnesses, no model); judges with a model are not built yet"
    )
