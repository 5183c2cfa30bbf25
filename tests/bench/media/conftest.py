"""Files to digest, made on the spot, and a cache that is empty at first."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.media.digest import digest_of
from bench.media.settings import Settings


class Made:
    """A digest as a test looks at it."""

    def __init__(self, folder: Path, sha256: str) -> None:
        self.folder, self.sha256 = folder, sha256
        self.text = (folder / "digest.md").read_text(encoding="utf-8")
        self.summary: dict[str, Any] = json.loads((folder / "digest.json").read_bytes())
        self.names = sorted(path.name for path in folder.iterdir())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CDB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def made(cache: Path) -> Callable[..., Made]:
    def make(path: Path, **settings: Any) -> Made:
        return Made(*digest_of(path, Settings(**settings)))

    return make


@pytest.fixture
def film(tmp_path: Path) -> Callable[..., Path]:
    """Three scenes of two seconds each (red, green, blue) with a tone; the encoder's only whole frame is the first."""

    def make(name: str = "film.mp4", *more: str) -> Path:
        scenes = [f"color=c={colour}:s=1920x1080:r=10:d=2" for colour in ("red", "green", "blue")]
        command = ["ffmpeg", "-v", "error", "-y"]
        for scene in scenes:
            command += ["-f", "lavfi", "-i", scene]
        command += ["-f", "lavfi", "-i", "sine=frequency=440:duration=3,apad=whole_dur=6"]
        command += ["-filter_complex", "[0][1][2]concat=n=3:v=1[v]", "-map", "[v]", "-map", "3:a"]
        command += ["-g", "1000", "-sc_threshold", "0", "-preset", "ultrafast", "-pix_fmt", "yuv420p"]
        subprocess.run([*command, *more, str(tmp_path / name)], check=True, stdin=subprocess.DEVNULL)
        return tmp_path / name

    return make
