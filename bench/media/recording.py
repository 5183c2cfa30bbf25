"""Audio and video: what is in the container, whether it decodes, key frames, loudness over time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.media.film import watch
from bench.media.found import Found, Picture, clock, one_line
from bench.media.picture import fitted, jpeg
from bench.media.settings import Settings
from bench.media.sound import listen

FORMATS = (
    "aac,ac3,aiff,amr,asf,au,avi,caf,flac,flv,matroska,webm,mov,mp4,m4a,3gp,mp3,mpeg,mpegts,mpegvideo,ogg,wav,w64,"
    "gif,h264,hevc,ivf,m4v,eac3"
)
"""Containers that hold their content themselves: a play list would make the reader open other files."""
MAX_ERRORS = 200
MAX_TAGS = 30


def read_recording(path: Path, settings: Settings, folder: Path, found: Found, wav: Path | None) -> None:
    """`wav` is where the sound goes as 16 kHz mono, for a speech recogniser; None where none is asked."""
    import av

    av.logging.set_level(None)
    with opened(path) as media:
        _describe(media, found)
        films = [stream.index for stream in media.streams.video if not _is_cover(stream)]
        covers = [stream.index for stream in media.streams.video if _is_cover(stream)]
        sounds = [stream.index for stream in media.streams.audio]
    found.kind = "video" if films else "audio"
    if covers:
        with found.part("cover picture"):
            _cover(path, covers[0], settings, folder, found)
    if films:
        with found.part("video"):
            watch(path, films[0], settings, folder, found)
    if sounds:
        with found.part("audio"):
            listen(path, sounds[0], settings, found, wav)
    if not films and not sounds:
        found.unread.append("all of it: it has neither sound nor picture")


def opened(path: Path) -> Any:
    import av

    return av.open(str(path), metadata_errors="replace", options={"format_whitelist": FORMATS})


def decoded(media: Any, stream: Any, errors: list[str]) -> Iterator[Any]:
    """Every frame that can be decoded. What fails is added to `errors`; a file cut short ends the stream."""
    import av

    packets = media.demux(stream)
    while len(errors) < MAX_ERRORS:
        try:
            packet = next(packets, None)
            if packet is None:
                return
        except av.error.FFmpegError as error:
            errors.append(f"it ends too early ({_said(error)})")
            return
        try:
            frames = packet.decode()
        except av.error.FFmpegError as error:
            errors.append(_said(error))
            continue
        yield from frames


def decodes(frames: int, errors: list[str], what: str = "frames") -> str:
    """For the facts: whether it decodes."""
    if not frames:
        return f"no ({errors[0]})" if errors else "no: nothing is in it"
    return f"yes, {frames} {what}" if not errors else f"in part, {frames} {what}; {len(errors)} errors: {errors[0]}"


def _describe(media: Any, found: Found) -> None:
    found.facts["Container"] = f"{media.format.long_name} ({media.format.name})"
    if media.duration:
        found.facts["Duration"] = f"{clock(media.duration / 1_000_000)} ({media.duration / 1_000_000:.2f} s)"
    for stream in media.streams:
        label = f"Stream {stream.index}"
        language = f", language {stream.language}" if stream.language not in (None, "und") else ""
        found.facts[label] = f"{stream.type}{_stream(stream)}{language}"
    tags = [f"{key}: {one_line(value)}" for key, value in sorted(media.metadata.items())[:MAX_TAGS]]
    found.text("Tags", "\n".join(tags))
    with found.part("chapters"):
        chapters = [
            f"{clock(float(one['start'] * one['time_base']))} {one_line(one.get('metadata', {}).get('title', ''))}"
            for one in media.chapters()[:200]
        ]
        found.text("Chapters", "\n".join(chapters))


def _stream(stream: Any) -> str:
    codec = stream.codec_context
    if codec is None:
        return ""
    if stream.type == "video":
        rate = f", {float(stream.average_rate):.2f} fps" if stream.average_rate else ""
        cover = ", a cover picture" if _is_cover(stream) else ""
        return f", {codec.name}, {codec.width} × {codec.height}{rate}{cover}"
    if stream.type == "audio":
        return f", {codec.name}, {codec.sample_rate} Hz, {codec.channels} channels"
    return f", {codec.name}"


def _is_cover(stream: Any) -> bool:
    import av

    return bool(stream.disposition & av.stream.Disposition.attached_pic)


def _cover(path: Path, index: int, settings: Settings, folder: Path, found: Found) -> None:
    with opened(path) as media:
        for frame in decoded(media, media.streams[index], []):
            if frame.width * frame.height <= settings.max_image_pixels:
                (folder / "cover.jpg").write_bytes(jpeg(fitted(frame.to_image(), settings.frame_px)))
                found.pictures.append(Picture(file="cover.jpg", caption="cover picture"))
            return


def _said(error: Exception) -> str:
    return one_line(getattr(error, "strerror", None) or type(error).__name__)
