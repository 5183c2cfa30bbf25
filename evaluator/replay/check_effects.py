"""Checks of what the application did: storage, downloads, dialogs, console, media, requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from evaluator.replay.check_files import csv_fits, json_fits, kind_of
from evaluator.replay.finding import Finding, has_text, quoted
from evaluator.replay.inside import MEDIA, ask
from evaluator.replay.objects import every_object
from evaluator.replay.readings import fold, number_fits, plain
from evaluator.replay.stage import NotShown, Stage
from evaluator.witness import checks as c

_PLAYING_WATCH_MS = 150
_MAX_LISTED = 3


def storage(stage: Stage, check: c.StorageCheck) -> Finding:
    if check.area == "cookie":
        kept = {one.get("name"): one.get("value", "") for one in stage.visit.context.cookies(stage.page.url)}
        seen = kept.get(check.key)
    else:
        seen = ask(stage.page.locator(":root"), "stored", check.area, check.key)
    if seen is None:
        return Finding(check.absent is True, "no such entry")
    holds = (
        check.absent is None
        and (check.contains is None or check.contains in seen)
        and (check.matches is None or re.search(check.matches, seen) is not None)
    )
    return Finding(holds, quoted(seen))


def download(stage: Stage, check: c.DownloadCheck, already: int) -> Finding:
    """Looks at downloads from number `already` on."""
    names = []
    asks = (check.bytes, check.kind, check.content_contains, check.content_matches, check.csv, check.json_)
    for one in stage.visit.downloads[already:]:
        name = one.suggested_filename
        names.append(name)
        if check.name_matches is not None and re.search(check.name_matches, name) is None:
            continue
        if all(asked is None for asked in asks):
            return Finding(True, quoted(name))
        holds, seen = _content(stage.visit.download_bytes(one), check)
        names[-1] = f"{name} holding {seen}"
        if holds:
            return Finding(True, quoted(names[-1]))
    return Finding(False, "; ".join(quoted(name) for name in names) or "no download")


def _content(content: bytes, check: c.DownloadCheck) -> tuple[bool, str]:
    """Whether a file's content is as said, and what was seen of it."""
    text = content.decode("utf-8", "replace")
    holds = (
        (check.bytes is None or number_fits(len(content), check.bytes))
        and (check.kind is None or kind_of(content) == check.kind)
        and (check.content_contains is None or check.content_contains in text)
        and (check.content_matches is None or re.search(check.content_matches, text) is not None)
    )
    said = [f"{len(content)} bytes of {kind_of(content)}"]
    inner = [csv_fits(content, check.csv)] if check.csv else []
    inner += [json_fits(content, check.json_)] if check.json_ else []
    for fits, seen in inner:
        holds = holds and fits
        said.append(seen)
    if check.csv is None and check.json_ is None:
        said.append(text[:200])
    return holds, ": ".join(said)


def empty_clipboard(stage: Stage) -> None:
    """What an earlier visit left there must not be taken for the page's doing."""
    stage.visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    stage.page.evaluate("() => navigator.clipboard.writeText('')")


def clipboard(stage: Stage, check: c.ClipboardCheck) -> Finding:
    seen = stage.page.evaluate("() => navigator.clipboard.readText()")
    holds = (
        bool(seen)
        and (check.equals is None or seen == check.equals)
        and (check.contains is None or check.contains in seen)
        and (check.matches is None or re.search(check.matches, seen) is not None)
    )
    return Finding(holds, quoted(seen) if seen else "nothing on the clipboard")


def dialog(stage: Stage, check: c.DialogCheck) -> Finding:
    seen = [one.message for one in stage.visit.dialogs]
    holds = any(has_text(one, check.contains) for one in seen)
    return Finding(holds, "; ".join(quoted(fold(one)) for one in seen[-_MAX_LISTED:]) or "no dialog")


def console_clean(stage: Stage) -> Finding:
    faults = stage.visit.faults
    return Finding(not faults, "; ".join(quoted(one) for one in faults[:_MAX_LISTED]) or "no error")


def media(stage: Stage, check: c.MediaCheck) -> Finding:
    """One element, or without a target any of the page: the first that is as said, else the first there is."""
    with _players(stage, check) as read:
        first = later = read()
        if check.state == "playing" and any(not one["paused"] and not one["ended"] for one in first):
            stage.page.wait_for_timeout(_PLAYING_WATCH_MS)
            later = read()
    if not first:
        return Finding(False, "no sound or film on the page")
    found = [_is_as_said(one, now, check) for one, now in zip(first, later, strict=False)]
    return next((one for one in found if one.holds), found[0])


Player = dict[str, Any]


@contextmanager
def _players(stage: Stage, check: c.MediaCheck) -> Iterator[Callable[[], list[Player]]]:
    """A way to read the state of what is meant, always in the same order. Raises NotShown."""
    if check.target is None:
        with every_object(stage.page, "HTMLMediaElement.prototype") as objects:
            yield lambda: [one for one in objects(MEDIA) if one]
        return
    found = stage.present(check.target)

    def one() -> list[Player]:
        now = ask(found, "media")
        if now is None:
            raise NotShown("an element that is neither audio nor video")
        return [now]

    yield one


def _is_as_said(before: Player, now: Player, check: c.MediaCheck) -> Finding:
    moving = not now["paused"] and not now["ended"] and now["time"] > before["time"]
    states = {
        None: True,
        "playing": moving,
        "paused": now["paused"] and not now["ended"],
        "ended": now["ended"],
        "has_frames": now["wide"] > 0 and now["frames"] > 0,
        "has_audio": now["audio"] > 0,
    }
    holds = states[check.state]
    for name in ("muted", "loop", "captions"):
        wanted = getattr(check, name)
        holds = holds and (wanted is None or now[name] == wanted)
    for name in ("time", "duration", "volume", "rate"):
        wanted = getattr(check, name)
        if wanted is not None:
            holds = holds and now[name] is not None and number_fits(now[name], wanted)
    if check.source_contains is not None:
        holds = holds and check.source_contains in now["source"]
    return Finding(bool(holds), _told(now, moving))


def _told(now: dict[str, object], moving: bool) -> str:
    doing = "ended" if now["ended"] else "paused" if now["paused"] else "playing" if moving else "started"
    said = [f"{doing} at {_seconds(now['time'])} of {_seconds(now['duration'])}"]
    said.append(f"volume {now['volume']}, rate {now['rate']}" + (", muted" if now["muted"] else ""))
    said += [word for word in ("loop", "captions") if now[word]]
    said.append(f"{now['frames']} frames shown, {now['audio']} bytes of sound decoded")
    if now["error"]:
        said.append(f"media error {now['error']}")
    return "; ".join(said) + f"; source {quoted(str(now['source'])[:100])}"


def _seconds(value: object) -> str:
    return f"{plain(round(value, 2))} s" if isinstance(value, int | float) else "unknown length"


def request(stage: Stage, check: c.RequestCheck) -> Finding:
    seen = stage.visit.requests
    holds = any(
        check.url_contains in one.url and (check.method is None or one.method == check.method) for one in seen
    )
    last = "; ".join(f"{one.method} {one.url}"[:120] for one in seen[-_MAX_LISTED:])
    return Finding(holds, last or "no request")
