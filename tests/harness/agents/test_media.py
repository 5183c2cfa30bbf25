"""Which of a task's files an agent hands over, and under which names."""

from __future__ import annotations

from collections.abc import Callable

from bench.task import Task
from harness.agents.media import (
    MAX_INLINE_BYTES,
    MAX_INLINE_FILES,
    MAX_INLINE_TOTAL_BYTES,
    counts,
    kind_of,
    native_media,
)


def test_annotation_first_then_attachments_under_names_that_need_no_quoting(task: Callable[..., Task]) -> None:
    media = native_media(task(), {"image"})
    assert [one.home_name for one in media] == ["attached/01.png", "attached/02.png"]
    assert media[0].workspace_path == "/workspace/_annotations/page, marked.png"
    assert {one.mime for one in media} == {"image/png"}
    assert counts(media) == {"image": 2}
    assert native_media(task(), set()) == []


def test_what_is_too_large_too_many_or_a_link_is_only_named(task: Callable[..., Task]) -> None:
    made = task()
    folder = made.project / "_attachments"
    (folder / "huge.png").write_bytes(b"x" * (MAX_INLINE_BYTES + 1))
    (folder / "link.png").symlink_to("/etc/hostname")
    for number in range(MAX_INLINE_FILES + 5):
        (folder / f"z{number:02}.webp").write_bytes(b"x")
    media = native_media(made, {"image"})
    assert len(media) == MAX_INLINE_FILES
    assert not [one for one in media if one.source.name in ("huge.png", "link.png")]
    assert media[-1].mime == "image/webp"


def test_all_together_stay_within_a_request(task: Callable[..., Task]) -> None:
    made = task()
    for number in range(9):
        (made.project / "_attachments" / f"z{number}.png").write_bytes(b"x" * 3_000_000)
    sizes = [one.source.stat().st_size for one in native_media(made, {"image"})]
    assert sum(sizes) <= MAX_INLINE_TOTAL_BYTES
    assert len(sizes) == 6  # the task's own two are small


def test_kinds_are_told_by_name() -> None:
    assert [kind_of(name) for name in ("a.PNG", "b.mp3", "c.mov", "d.pdf", "e.docx", "f")] == [
        "image", "audio", "video", "document", None, None,
    ]  # fmt: skip
