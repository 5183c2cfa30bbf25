"""The bundle's own README: what is in it, how to check it, and what a check does not show."""

from __future__ import annotations

from evaluator.bundle.layout import ResultCard

CANNOT_SHOW = (
    "who made the submissions and with which model: names are the maker's own word",
    "that nothing was tried before or beside this: a run that was thrown away leaves no trace here",
    "that the judge's model said what is recorded; its credits stand on witnesses, and those can be replayed",
    "that recorded replays ran as told, unless they are run again (`--replays`): whoever writes everything anew, "
    "replays and pictures too, leaves nothing that contradicts itself",
    "when anything happened: times are this bundle's own word",
    "that it is the bundle that was published, unless its digest was published elsewhere and is compared "
    "(`--digest`)",
)


def readme(results: list[ResultCard], holds: dict[str, bool], left_out: list[dict[str, str]]) -> str:
    """Markdown; the same contents give the same text."""
    lines = ["# A judged result, with its evidence", ""]
    lines += [f"- `results/{card.name}`: {_flat(card.label)}" for card in results]
    lines += [
        "",
        "It holds the criteria the results were judged by, so it must not lie where an agent to be judged can read "
        "it. The submissions are derived from the dataset's starting applications; its terms go with them.",
        "",
        "Not in it:",
        "",
        *(f"- {one['what']}: {one['why']}" for one in left_out),
        "",
        "To check it: `cdb verify BUNDLE`, and with the engine and "
        + ("" if holds["start"] else "the extracted release (`--dataset`), ")
        + "some verdicts anew: `cdb verify BUNDLE --replays 5`.",
        "",
        "A check does not show",
        "",
        *(f"- {one}" for one in CANNOT_SHOW),
        "",
    ]
    return "\n".join(lines)


def _flat(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if c.isprintable() and c not in "`<>[]|")
