"""Checks of what the application did: storage, downloads, dialogs, console, media, requests."""

from __future__ import annotations

import re

from evaluator.replay.finding import Finding, has_text, quoted
from evaluator.replay.readings import fold, number_fits, plain
from evaluator.replay.stage import READ_MS, Stage
from evaluator.witness import checks as c

_STORED = "([area, key]) => (area === 'local' ? localStorage : sessionStorage).getItem(key)"
_PLAYING_WATCH_MS = 150
_MAX_LISTED = 3
_MEDIA = """e => {
  if (!(e instanceof HTMLMediaElement)) return null;
  const frames = e.videoWidth && e.getVideoPlaybackQuality ? e.getVideoPlaybackQuality().totalVideoFrames : 0;
  return {time: e.currentTime, duration: Number.isFinite(e.duration) ? e.duration : null, volume: e.volume,
    rate: e.playbackRate, muted: e.muted, paused: e.paused, ended: e.ended, ready: e.readyState,
    source: e.currentSrc || e.src, frames, wide: e.videoWidth || 0, audio: e.webkitAudioDecodedByteCount || 0,
    error: e.error ? e.error.message || 'code ' + e.error.code : null};
}"""


def storage(stage: Stage, check: c.StorageCheck) -> Finding:
    seen = stage.page.evaluate(_STORED, [check.area, check.key])
    if seen is None:
        return Finding(check.absent is True, "no such entry")
    return Finding(check.absent is None and (check.contains is None or check.contains in seen), quoted(seen))


def download(stage: Stage, check: c.DownloadCheck, already: int) -> Finding:
    """Looks at downloads from number `already` on."""
    names = []
    for one in stage.visit.downloads[already:]:
        name = one.suggested_filename
        names.append(name)
        if check.name_matches is not None and re.search(check.name_matches, name) is None:
            continue
        if check.content_contains is None and check.content_matches is None:
            return Finding(True, quoted(name))
        content = stage.visit.download_bytes(one).decode("utf-8", "replace")
        names[-1] = f"{name} holding {content[:200]}"
        if (check.content_contains is None or check.content_contains in content) and (
            check.content_matches is None or re.search(check.content_matches, content)
        ):
            return Finding(True, quoted(names[-1]))
    return Finding(False, "; ".join(quoted(name) for name in names) or "no download")


def dialog(stage: Stage, check: c.DialogCheck) -> Finding:
    seen = [one.message for one in stage.visit.dialogs]
    holds = any(has_text(one, check.contains) for one in seen)
    return Finding(holds, "; ".join(quoted(fold(one)) for one in seen[-_MAX_LISTED:]) or "no dialog")


def console_clean(stage: Stage) -> Finding:
    faults = stage.visit.faults
    return Finding(not faults, "; ".join(quoted(one) for one in faults[:_MAX_LISTED]) or "no error")


def media(stage: Stage, check: c.MediaCheck) -> Finding:
    found = stage.present(check.target)
    now = found.evaluate(_MEDIA, timeout=READ_MS)
    if now is None:
        return Finding(False, "an element that is neither audio nor video")
    moving = False
    if check.state == "playing" and not now["paused"] and not now["ended"]:
        stage.page.wait_for_timeout(_PLAYING_WATCH_MS)
        later = found.evaluate(_MEDIA, timeout=READ_MS) or now
        moving, now = later["time"] > now["time"], later
    states = {
        None: True,
        "playing": moving,
        "paused": now["paused"] and not now["ended"],
        "ended": now["ended"],
        "has_frames": now["wide"] > 0 and now["frames"] > 0,
        "has_audio": now["audio"] > 0,
    }
    holds = states[check.state] and (check.muted is None or now["muted"] == check.muted)
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
