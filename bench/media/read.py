"""The reading process: `python -m bench.media.read FILE FOLDER JOB`, with bounded memory, time and output.

JOB is a JSON file with name, settings and where to put what was found; pictures go into FOLDER. A process of its own,
because a damaged file may crash a reader, or make it ask for all memory there is.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from bench.media.document import read_pdf
from bench.media.found import Found
from bench.media.kinds import kind_of
from bench.media.office import read_office
from bench.media.picture import read_image
from bench.media.recording import read_recording
from bench.media.settings import Settings
from bench.media.text import read_text

MAX_OUTPUT_BYTES = 1024**3
"""Of one file: a WAV of three hours has 350 MB."""


def read(path: Path, name: str, settings: Settings, folder: Path, wav: Path | None = None) -> Found:
    """Everything a digest tells of a file. Never raises for what is in it."""
    found = Found(hide=str(path))
    if not path.stat().st_size:
        found.unread.append("all of it: it is empty")
        return found
    with found.part("all of it"):
        found.kind = kind_of(path, name)
        match found.kind:
            case "audio" | "video":
                read_recording(path, settings, folder, found, wav)
            case "image":
                read_image(path, settings, folder, found)
            case "pdf":
                read_pdf(path, settings, folder, found)
            case "office":
                read_office(path, settings, found)
            case "text":
                read_text(path, settings, found)
            case _:
                found.unread.append("all of it: no reader for this kind of file is here")
    return found


def main(source: str, folder: str, job_file: str) -> None:
    job = json.loads(Path(job_file).read_bytes())
    settings = Settings(**{**job["settings"], "asr": tuple(job["settings"]["asr"])})
    resource.setrlimit(resource.RLIMIT_AS, (settings.memory_bytes, settings.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (settings.cpu_s, settings.cpu_s + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    wav = Path(job["wav"]) if settings.asr else None
    found = read(Path(source), job["name"], settings, Path(folder), wav)
    told = json.dumps(found.model_dump(), ensure_ascii=False)
    Path(job["found"]).write_bytes(told.encode("utf-8", "replace"))  # lone surrogates are no text


if __name__ == "__main__":
    main(*sys.argv[1:])
