"""What was seen on a start application, kept for every entry that is judged against the same one.

A witness behaves on the untouched start application as it does, whoever's submission it was written for. So
judgings of one run share a folder: the first to need a replay or a look runs it, the others take it over, pictures
included. Key: the start's build, the browser's image, the witness.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

from bench.atomic import write_json
from evaluator.records import Replay


class StartReplays:
    """The shared folder. Writers of one key at the same time each leave a whole entry; the first one stays."""

    def __init__(self, folder: Path, start_key: str) -> None:
        self._folder = folder / hashlib.sha256(start_key.encode()).hexdigest()[:24]

    def replay(self, witness_digest: str, results: Path, evidence: Path) -> Replay | None:
        """A kept replay, its pictures copied to `evidence` (below `results`); None when there is none."""
        kept = self._folder / _name(witness_digest)
        if not (kept / "replay.json").is_file():
            return None
        replay = Replay.model_validate_json((kept / "replay.json").read_text(encoding="utf-8"))
        evidence.mkdir(parents=True, exist_ok=True)
        for step in replay.steps:
            if step.frame:
                picture = evidence / Path(step.frame).name
                shutil.copyfile(kept / Path(step.frame).name, picture)
                step.frame = str(picture.relative_to(results))
        return replay

    def keep_replay(self, witness_digest: str, replay: Replay, results: Path) -> None:
        pictures = [results / step.frame for step in replay.steps if step.frame]
        shared = replay.model_copy(update={"shared": True})
        files = {path.name: path for path in pictures}
        self._keep(_name(witness_digest), "replay.json", shared.model_dump(mode="json"), files)

    def look(self, evidence: Path, name: str = "look") -> bool:
        """Copy a kept look's files to `evidence`, where they lay; whether there was one."""
        kept = self._folder / name
        if not (kept / "look.json").is_file():
            return False
        for place in json.loads((kept / "look.json").read_text(encoding="utf-8")):
            (evidence / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(kept / place, evidence / place)
        return True

    def keep_look(self, files: list[Path], name: str = "look", evidence: Path | None = None) -> None:
        """`evidence`: the folder their places are kept below; without it all are taken to lie in one."""
        places = {str(path.relative_to(evidence)) if evidence else path.name: path for path in files}
        self._keep(name, "look.json", list(places), places)

    def _keep(self, name: str, index: str, content: object, files: dict[str, Path]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(prefix=".", dir=self._folder))
        for place, path in files.items():
            (staged / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, staged / place)
        write_json(staged / index, content)
        try:
            staged.rename(self._folder / name)
        except OSError:  # another judging was first
            shutil.rmtree(staged)


def _name(witness_digest: str) -> str:
    return witness_digest.removeprefix("sha256:")[:32]
