"""Sound and film: facts, key frames at the changes, loudness, transcript; damaged ones say what is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from bench.errors import InfraError, UsageError
from bench.media.film import Shot, choose
from bench.media.settings import settings_of
from bench.media.sound import timeline

SAMPLE = Path(__file__).parents[3] / "harness/sample/cases"
SPEECH = SAMPLE / "clinic-booking/project/_attachments/voice-note.mp3"
BOARD = SAMPLE / "task-board/project/_attachments/old-board.mp4"
Make = Callable[..., Any]


def colour(path: Path) -> tuple[int, ...]:
    pixel = Image.open(path).getpixel((100, 100))
    assert isinstance(pixel, tuple)
    return pixel


def test_key_frames_stand_at_the_changes_whatever_the_encoder_made_whole(made: Make, film: Make) -> None:
    digest = made(film())
    times = [one["caption"] for one in digest.summary["pictures"] if one["file"].startswith("frame-")]
    assert times == ["at 0:00.0", "at 0:02.0", "at 0:04.0", "at 0:05.9"]
    shown = [
        colour(digest.folder / f"frame-0{number}.jpg").index(max(colour(digest.folder / f"frame-0{number}.jpg")))
        for number in (1, 2, 3, 4)
    ]
    assert shown == [0, 1, 2, 2]
    assert Image.open(digest.folder / "frame-01.jpg").size == (1280, 720)
    assert Image.open(digest.folder / "frames.jpg").width == 1280
    facts = digest.summary["facts"]
    assert facts["Duration"] == "0:06.0 (6.00 s)"
    assert facts["Stream 0"] == "video, h264, 1920 × 1080, 10.00 fps"
    assert facts["Stream 1"].startswith("audio, aac, 44100 Hz, 1 channels")
    assert facts["Video decodes"] == "yes, 60 frames"
    assert digest.summary["limits"] == []


def test_the_loudness_shows_where_the_tone_ends(made: Make, film: Make) -> None:
    lines = made(film()).text.split("## Loudness over time\n\n")[1].splitlines()
    levels = [float(line.split()[3]) for line in lines[:6]]
    assert min(levels[:3]) > -25
    assert max(levels[4:6]) < -60


def test_a_long_film_is_looked_at_whole_frame_by_whole_frame_beyond_the_cap(made: Make, film: Make) -> None:
    digest = made(film(), full_decode_pixels=1920 * 1080 * 30)
    assert digest.summary["limits"] == ["length: whole frames only after 0:03.0"]
    assert digest.summary["facts"]["Video decodes"].startswith("yes, ")


def test_a_phones_film_is_shown_upright(made: Make, film: Make, tmp_path: Path) -> None:
    flat = film()
    turned = tmp_path / "turned.mp4"
    turn = ["ffmpeg", "-v", "error", "-y", "-display_rotation", "90", "-i", str(flat), "-c", "copy", str(turned)]
    if subprocess.run(turn, stdin=subprocess.DEVNULL, check=False).returncode:
        turn = [
            "ffmpeg",
            "-v",
            "error",
            "-y",
            "-i",
            str(flat),
            "-c",
            "copy",
            "-metadata:s:v",
            "rotate=90",
            str(turned),
        ]
        subprocess.run(turn, stdin=subprocess.DEVNULL, check=True)
    size = Image.open(made(turned).folder / "frame-01.jpg").size
    assert size == (720, 1280)


@pytest.mark.parametrize(("name", "codec"), [("film.webm", "vp8"), ("film.mov", "h264"), ("film.mkv", "h264")])
def test_the_usual_containers_are_read(made: Make, film: Make, name: str, codec: str) -> None:
    more = ["-c:v", "libvpx", "-b:v", "1M", "-deadline", "realtime", "-cpu-used", "8"] if codec == "vp8" else []
    digest = made(film(name, *more))
    assert codec in digest.summary["facts"]["Stream 0"]
    assert digest.summary["facts"]["Video decodes"] == "yes, 60 frames"
    assert digest.summary["facts"]["Sound decodes"] == "yes, 6 seconds"


def test_the_samples_own_recordings(made: Make) -> None:
    speech, board = made(SPEECH), made(BOARD)
    assert speech.summary["kind"] == "audio"
    assert speech.summary["facts"]["Duration"] == "0:41.1 (41.14 s)"
    assert speech.summary["facts"]["Sound decodes"] == "yes, 41 seconds"
    assert "No transcript: no speech recogniser is configured." in speech.text
    assert len(speech.text.split("Loudness over time")[1].strip().splitlines()) == 42
    assert [name for name in board.names if name.startswith("frame-")] == [f"frame-{n:02}.jpg" for n in range(1, 13)]
    assert "No transcript: there is no sound that can be decoded." in board.text
    assert board.summary["unread"] == speech.summary["unread"] == []


def test_a_speech_recogniser_gets_a_wav_file_and_its_words_are_kept(made: Make) -> None:
    script = "import sys, wave; w = wave.open(sys.argv[1]); print('Heard', w.getnchannels(), w.getframerate(), round(w.getnframes() / 16000))"
    plain = made(SPEECH)
    heard = made(SPEECH, asr=(sys.executable, "-c", script, "{wav}"))
    assert "## Transcript\n\nHeard 1 16000 41\n" in heard.text
    assert (plain.summary["transcript"], heard.summary["transcript"]) == (False, True)
    assert plain.sha256 != heard.sha256
    assert made(SPEECH, asr=(sys.executable, "-c", script)).text == heard.text


def test_a_speech_recogniser_that_fails_is_the_machines_trouble(made: Make, cache: Path) -> None:
    with pytest.raises(InfraError, match=r"voice-note\.mp3: the speech recogniser of CDB_ASR ended with 3: no model"):
        made(SPEECH, asr=(sys.executable, "-c", "import sys; print('no model', file=sys.stderr); sys.exit(3)"))
    assert list((cache / "digests").iterdir()) == []


def test_a_speech_recogniser_that_is_not_there_is_refused_at_once() -> None:
    assert settings_of({"CDB_ASR": f"'{sys.executable}' -m some {{wav}}"}).asr == (
        sys.executable,
        "-m",
        "some",
        "{wav}",
    )
    assert settings_of({}).asr == ()
    with pytest.raises(UsageError, match="no-such-program"):
        settings_of({"CDB_ASR": "no-such-program {wav}", "PATH": "/usr/bin"})
    with pytest.raises(UsageError, match="no command line"):
        settings_of({"CDB_ASR": "whisper 'x"})


@pytest.mark.parametrize("keep", [0.3, 0.7])
def test_a_film_cut_short_shows_what_is_there(made: Make, film: Make, tmp_path: Path, keep: float) -> None:
    whole = film("film.mkv").read_bytes()
    cut = tmp_path / "cut.mkv"
    cut.write_bytes(whole[: int(len(whole) * keep)])
    digest = made(cut)
    assert digest.summary["facts"]["Video decodes"].split()[0] in ("yes,", "in")
    assert 0 < int(digest.summary["facts"]["Video decodes"].split("frames")[0].split()[-1]) < 60
    assert "frame-01.jpg" in digest.names


def test_an_mp4_without_its_index_cannot_be_read_and_says_so(made: Make, film: Make, tmp_path: Path) -> None:
    whole = film().read_bytes()
    assert whole.index(b"moov") > len(whole) / 2
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(whole[: len(whole) // 2])
    digest = made(cut)
    assert digest.names == ["digest.json", "digest.md"]
    assert digest.summary["unread"][0].startswith("all of it: InvalidDataError")
    assert "/" not in digest.summary["unread"][0]


def test_a_play_list_called_a_film_opens_no_other_file(made: Make, tmp_path: Path) -> None:
    (tmp_path / "secret.mp4").write_bytes(BOARD.read_bytes())
    for number, name in enumerate(("list.mp4", "list.mp3", "list.m4v")):
        (tmp_path / name).write_text(
            f"#EXTM3U\n#EXT-X-TARGETDURATION:12\n#EXTINF:11.3,\n{tmp_path / 'secret.mp4'}\n#EXT-X-ENDLIST\n{number}"
        )
        digest = made(tmp_path / name)
        assert "Duration" not in digest.summary["facts"]
        assert not [name for name in digest.names if name.startswith("frame")]
        assert "yes" not in str(digest.summary["facts"])
    (tmp_path / "concat.mp4").write_text(f"ffconcat version 1.0\nfile '{tmp_path / 'secret.mp4'}'\n")
    assert "Duration" not in made(tmp_path / "concat.mp4").summary["facts"]


def test_frames_too_large_to_hold_are_not_decoded(made: Make) -> None:
    digest = made(BOARD, max_frame_pixels=960 * 600 - 1)
    assert digest.summary["limits"] == ["frame size: 576000 pixels is more than 575999; no frame is shown"]
    assert digest.names == ["digest.json", "digest.md"]


def test_first_and_last_and_the_greatest_changes_are_chosen_apart_from_each_other() -> None:
    shots = [Shot(t / 2, float(score), b"") for t, score in enumerate([0, 9, 8, 1, 1, 1, 1, 5, 1, 1, 1, 0])]
    assert [shot.time_s for shot in choose(shots, 4)] == [0.0, 0.5, 1.0, 5.5]
    long = [shot._replace(time_s=shot.time_s * 20) for shot in shots]
    assert [shot.time_s for shot in choose(long, 3)] == [0.0, 20.0, 110.0]  # 10 s are too near to the first
    assert choose(shots[:1], 4) == shots[:1]


def test_the_time_line_of_a_long_sound_stays_short() -> None:
    lines = timeline([-20.0] * 3599).splitlines()
    assert len(lines) == 60
    assert lines[-1] == "59:00.0 to 59:59.0   -20.0 dB  #############"
    assert timeline([]) == ""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_length_of_a_film(tmp_path: Path, cache: Path) -> None:
    script = (
        "import re, resource, sys; from pathlib import Path; from bench.media.digest import digest_of;"
        "from bench.media.settings import Settings; digest_of(Path(sys.argv[1]), Settings());"
        "peak = re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1];"  # a child's ru_maxrss is its parent's
        "print(peak, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    peaks = []
    for seconds in (5, 900):
        path = tmp_path / f"{seconds}.mp4"
        source = f"testsrc2=s=640x360:r=10:d={seconds}"
        command = [
            "ffmpeg",
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            source,
            "-f",
            "lavfi",
            "-i",
            f"sine=duration={seconds}",
        ]
        subprocess.run([*command, "-preset", "ultrafast", str(path)], check=True, stdin=subprocess.DEVNULL)
        told = subprocess.run([sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True)
        peaks.append([int(number) / 1024 for number in told.stdout.split()])
    (own_short, short), (own_long, long) = peaks
    print(f"peak MB of the reading process: {short:.0f} for 5 s, {long:.0f} for 15 min")
    assert long - short < 60
    assert own_long - own_short < 20
