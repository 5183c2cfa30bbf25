"""Writes a release of the public set's size: 96 tasks, 521 criteria, the card's attachment mix, tiny applications.

`python -m scripts.make_full_size_release OUT` makes below OUT: `release/` in the exact layout, `plans/`,
`witnesses/` for the recorded judge, `edits/` for a replay agent, `agent.yaml`, and `run.yaml` for `cdb run`.
It is for measuring a whole run on one machine; its verdicts mean nothing.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from evaluator.pack import pack_release
from evaluator.release_card import ReleaseAbout

TASKS, CRITERIA = 96, 521
MIX = {"audio": 32, "video": 24, "document": 16, "image": 4, "none": 20}
"""Tasks by primary attachment, as the dataset card counts them."""
NAMES = {"audio": "request.mp3", "video": "screen.mp4", "document": "brief.txt", "image": "sketch.png"}
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da6364f8cf500f0003860180"
    "5a34a17f0000000049454e44ae426082"
)
MEDIA = {"audio": b"ID3\x03\x00\x00\x00\x00\x00\x00", "video": b"\x00\x00\x00\x18ftypmp42", "image": PIXEL}


def make(out: Path) -> Path:
    """Write everything below `out`; gives the run's file."""
    kinds = [kind for kind, count in MIX.items() for _ in range(count)]
    with tempfile.TemporaryDirectory(prefix="cdb-full-size-") as scratch:
        sources, rubrics = Path(scratch) / "sources", Path(scratch) / "rubrics"
        for number, kind in enumerate(kinds):
            criteria = CRITERIA // TASKS + (number < CRITERIA % TASKS)
            _case(f"full-{number:03d}", kind, criteria, sources, rubrics, out)
        about = ReleaseAbout(
            name="Full-size measurement", scope="Full-96", version="1.0.0", released="2026-12-01",
            summary="Generated for measuring; not a benchmark.", authors="The codesign-bench contributors",
        )  # fmt: skip
        pack_release(sources, rubrics, out / "release", about)
    (out / "agent.yaml").write_text("kind: replay\nname: recorded-edit\nedit: done\nedits: edits\n", encoding="utf-8")
    config = {
        "name": "full-size", "out": str(out / "run"),
        "dataset": {"release": str(out / "release"), "root": str(out / "work"), "plans": str(out / "plans")},
        "agents": [str(out / "agent.yaml")],
        "judges": [{"model": "recorded", "witnesses": str(out / "witnesses")}],
        "concurrency": {"solve": 4, "judge": 5},
    }  # fmt: skip
    (out / "run.yaml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return out / "run.yaml"


def _case(case: str, kind: str, criteria: int, sources: Path, rubrics: Path, out: Path) -> None:
    """One case: a page with a paragraph for each criterion, of which the edit changes every one."""
    project = sources / case / "project"
    before = _page(case, ["before"] * criteria)
    _write(project / "index.html", before.encode())
    _write(project / "_annotations" / "annotated.png", PIXEL)
    if kind != "none":
        _write(project / "_attachments" / NAMES[kind], MEDIA.get(kind, b"Say after.\n") + case.encode())
    _json(sources / case / "user_queries.json", [{"text": f"Let every paragraph of {case} say after."}])
    _write(sources / case / "case.yaml", yaml.safe_dump({"title": case, "attachment": kind}).encode())
    texts = [f"Paragraph {i} of {case} reads after." for i in range(1, criteria + 1)]
    rows = [{"rubric_id": f"{case}-{i}", "criterion": text} for i, text in enumerate(texts, start=1)]
    _json(rubrics / case / "rubric.json", {"case_id": case, "task_id": case, "rubrics": rows})
    numbers = range(1, criteria + 1)
    parts = [
        {
            "criterion_index": i,
            "kind": "content",
            "sub_requirements": [{"id": "a", "text": texts[i - 1], "core": True}],
        }
        for i in numbers
    ]
    _json(out / "plans" / case / "plan.json", {"case": case, "criteria": parts})
    _json(out / "witnesses" / case / "witnesses.json", {"case": case, "witnesses": [_witness(i) for i in numbers]})
    _write(out / "edits" / case / "edits" / "done.patch", _patch(before, _page(case, ["after"] * criteria)).encode())


def _page(case: str, words: list[str]) -> str:
    lines = [
        f"<!doctype html><title>{case}</title>",
        *(f'<p id="p{i}">{w}</p>' for i, w in enumerate(words, start=1)),
    ]
    return "\n".join(lines) + "\n"


def _patch(before: str, after: str) -> str:
    import difflib

    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "diff --git a/index.html b/index.html\n" + "".join(
        difflib.unified_diff(old, new, "a/index.html", "b/index.html")
    )


def _witness(index: int) -> dict[str, Any]:
    step = {"expect": "text", "target": {"css": f"#p{index}"}, "contains": "after"}
    return {"criterion_index": index, "sub": "a", "witness": {"schema": "cdb.witness/1", "steps": [step]}}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _json(path: Path, content: object) -> None:
    _write(path, json.dumps(content, indent=1, ensure_ascii=False).encode())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m scripts.make_full_size_release OUT")
    print(make(Path(sys.argv[1]).absolute()))
