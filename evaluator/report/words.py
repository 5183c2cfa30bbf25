"""Codes of the records in plain words. A code without an entry is shown as its own words."""

from __future__ import annotations

from evaluator.adjudicate import RULES

COLUMN_WORDS = {
    "judge": "the judge's own verdicts",
    "card": "the same after the refuter, as the dataset card's protocol reports them",
    "witnessed": "lowered also wherever no witness replays, so that every credit can be run again",
}

PURPOSE_WORDS = {
    "propose": "First run",
    "repeat": "Repeated",
    "tiebreak": "Third run, to settle a disagreement",
    "vacuity": "Must tell the two applications apart",
    "vary": "With other inputs",
    "reload": "After a reload",
    "counter": "The refuter's counter-witness, which shows a fault where it holds,",
    "attack": "With inputs the refuter chose",
}

OUTCOME_WORDS = {
    "ok": "judged",
    "missing": "no submission",
    "unchanged": "application unchanged",
    "build_failed": "build failed",
    "serve_failed": "would not serve",
    "app_hang": "application hung",
    "infra_error": "the machine failed",
    "judge_error": "the judge gave no usable verdict",
    "unverified": "the refuter failed",
    "budget": "budget used up",
}

ATTACHMENT_WORDS = {
    "audio": "spoken request",
    "video": "screen recording",
    "document": "document",
    "image": "image",
    "none": "no attachment",
}

SHOT_WORDS = {
    "start_desktop": "Start, desktop",
    "submission_desktop": "Submission, desktop",
    "start_phone": "Start, phone",
    "submission_phone": "Submission, phone",
}


TRIAL_WORDS = {
    "ok": "ended by itself",
    "agent_error": "ended with an error",
    "agent_timeout": "stopped at its time limit",
    "budget_exceeded": "budget used up",
    "resource_limit": "ran into a limit",
    "workspace_too_large": "workspace too large",
    "sandbox_broken": "broke its container",
    "setup_error": "could not be started",
    "infra_error": "the machine failed",
    "not_started": "never started",
    "made elsewhere": "made elsewhere",
}

REFUTER_WORDS = {
    "uphold": "The refuter upholds the claim",
    "downgrade": "The refuter takes the claim away",
    "inconclusive": "The refuter came to no conclusion",
}


def rule_words(rule: str) -> str:
    """What a rule of `evaluator.adjudicate` means; one that is not in its table by its name."""
    return RULES.get(rule) or in_words(rule)


def in_words(code: str) -> str:
    """`code` spelled out: known outcomes from the table, others with their separators as spaces."""
    return OUTCOME_WORDS.get(code) or code.replace("_", " ").replace("-", " ").strip()


def duration(seconds: float) -> str:
    """`seconds` for people: 4.2 s, 3 min 10 s, 1 h 5 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
