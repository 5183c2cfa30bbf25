"""Audio, video and canvas elements: their state, and whether their pictures and sound go on."""

from __future__ import annotations

from typing import Any

from evaluator.browser_tools.call import tool_call
from evaluator.browser_tools.results import CanvasState, MediaSeen, MediaState
from evaluator.replay.stage import Stage

WATCH_MS = 600
_LOOK = """async () => {
  // In the frame in which a WebGL canvas was drawn: afterwards it reads as empty.
  await new Promise(done => { requestAnimationFrame(done); setTimeout(done, 100); });
  const all = [];
  const walk = root => {
    for (const e of root.querySelectorAll('*')) {
      if (e instanceof HTMLMediaElement || e instanceof HTMLCanvasElement) all.push(e);
      if (e.shadowRoot) walk(e.shadowRoot);
    }
  };
  walk(document);
  const box = e => { const b = e.getBoundingClientRect();
    return {x: Math.round(b.x), y: Math.round(b.y), width: Math.round(b.width), height: Math.round(b.height)}; };
  const media = all.filter(e => e instanceof HTMLMediaElement).slice(0, 20).map(e => ({
    kind: e instanceof HTMLVideoElement ? 'video' : 'audio',
    source: (e.currentSrc || e.src || (e.srcObject ? 'a stream' : '')).slice(0, 300),
    time: e.currentTime, duration: Number.isFinite(e.duration) ? e.duration : null,
    paused: e.paused, ended: e.ended, ready: e.readyState, network: e.networkState,
    frames: e.getVideoPlaybackQuality ? e.getVideoPlaybackQuality().totalVideoFrames : 0,
    width: e.videoWidth || 0, height: e.videoHeight || 0, audio: e.webkitAudioDecodedByteCount || 0,
    volume: e.volume, muted: e.muted, rate: e.playbackRate,
    seekable: e.seekable.length ? e.seekable.end(e.seekable.length - 1) : 0,
    error: e.error ? e.error.message || 'code ' + e.error.code : null,
  }));
  const canvases = all.filter(e => e instanceof HTMLCanvasElement).slice(0, 20).map(e => {
    const said = {box: box(e), visible: e.checkVisibility(), blank: null, colours: 0, print: null};
    if (!e.width || !e.height) return {...said, blank: true, print: 'empty'};
    try {
      const small = new OffscreenCanvas(Math.min(e.width, 64), Math.min(e.height, 64));
      const pen = small.getContext('2d', {willReadFrequently: true});
      pen.drawImage(e, 0, 0, small.width, small.height);
      const {data} = pen.getImageData(0, 0, small.width, small.height);
      const seen = new Set();
      let hash = 0, ink = false;
      for (let i = 0; i < data.length; i += 4) {
        const px = (data[i] << 24 | data[i + 1] << 16 | data[i + 2] << 8 | data[i + 3]) >>> 0;
        ink ||= data[i + 3] > 0;
        hash = Math.imul((hash << 5 | hash >>> 27) ^ px, 0x9E3779B1);
        if (seen.size < 1000) seen.add(px);
      }
      return {...said, blank: !ink, colours: seen.size, print: String(hash)};
    } catch (error) { return said; }
  });
  return {media, canvases, animations: document.getAnimations().filter(a => a.playState === 'running').length};
}"""
_UNDECODED = "its length is known and its sound plays, but this browser decodes no picture of it"


@tool_call()
def media_states(stage: Stage, watch_ms: int = WATCH_MS) -> MediaSeen:
    """Two looks, `watch_ms` apart. What plays without a picture that can be decoded is said to, not guessed."""
    before: dict[str, Any] = stage.page.evaluate(_LOOK)
    stage.page.wait_for_timeout(watch_ms)
    after: dict[str, Any] = stage.page.evaluate(_LOOK)
    return MediaSeen(
        watched_s=watch_ms / 1000,
        media=[_media(_same(before["media"], n, one), one) for n, one in enumerate(after["media"])],
        canvases=[_canvas(_earlier(before["canvases"], n), one) for n, one in enumerate(after["canvases"])],
        animations=after["animations"],
    )


def _same(before: list[dict[str, Any]], number: int, now: dict[str, Any]) -> dict[str, Any]:
    """The earlier look at the same element: by place and source; else the later one, which then shows no change."""
    earlier = _earlier(before, number)
    return earlier if earlier and earlier["source"] == now["source"] else now


def _earlier(before: list[dict[str, Any]], number: int) -> dict[str, Any] | None:
    return before[number] if number < len(before) else None


def _media(before: dict[str, Any], now: dict[str, Any]) -> MediaState:
    advancing = now["time"] > before["time"]
    undecoded = now["kind"] == "video" and now["ready"] > 0 and not now["width"]
    return MediaState(
        kind=now["kind"],
        source=now["source"],
        state=_state(now, advancing),
        time_s=round(now["time"], 3),
        duration_s=now["duration"],
        advancing=advancing,
        frames_advance=now["frames"] > before["frames"],
        frames=now["frames"],
        width=now["width"],
        height=now["height"],
        audio_bytes=now["audio"],
        volume=now["volume"],
        muted=now["muted"],
        rate=now["rate"],
        seekable_s=round(now["seekable"], 3),
        error=now["error"],
        note=_UNDECODED if undecoded else "",
    )


def _state(now: dict[str, Any], advancing: bool) -> Any:
    if now["error"]:
        return "failed"
    if not now["source"]:
        return "empty"
    if now["ended"]:
        return "ended"
    if now["paused"]:
        return "paused"
    return "playing" if advancing else "stalled"


def _canvas(before: dict[str, Any] | None, now: dict[str, Any]) -> CanvasState:
    known = before is not None and before["print"] is not None and now["print"] is not None
    return CanvasState(
        box=now["box"],
        visible=now["visible"],
        blank=now["blank"],
        colours=now["colours"],
        changing=before["print"] != now["print"] if known and before else None,
    )
