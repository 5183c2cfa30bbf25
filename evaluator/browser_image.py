"""What the browser image holds that can change a verdict: Chromium's version, its fonts."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from bench.atomic import write_json
from bench.cache import cache_folder
from bench.errors import InfraError
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_id, image_tag
from sandboxes.sandbox import SandboxSpec

_ASK_S = 60.0
_COMMANDS = {
    "chromium": ["/usr/bin/chromium-headless-shell", "--version"],
    "fonts": ["fc-list", "--format", "%{file} %{family} %{style}\n"],
}


def browser_facts() -> dict[str, Any]:
    """`chromium` (version), `fonts` (number) and `fonts_sha256` of the present browser image.

    An image is asked once and remembered under its id: two images of one tag, built at other times, may hold other
    versions. Raises InfraError when the image cannot be asked.
    """
    tag = image_tag("browser")
    kept = cache_folder("browser-images") / f"{image_id('browser').removeprefix('sha256:')[:24]}.json"
    if not kept.is_file():
        write_json(kept, _ask(tag))
    facts: dict[str, Any] = json.loads(kept.read_bytes())
    return facts


def _ask(tag: str) -> dict[str, Any]:
    answers = {}
    with (
        tempfile.TemporaryDirectory(prefix="cdb-facts-") as folder,
        DockerSandbox(SandboxSpec(role="browser", image=tag, run="facts")) as sandbox,
    ):
        for name, argv in _COMMANDS.items():
            said = Path(folder) / name
            if not sandbox.exec(argv, deadline_s=_ASK_S, cwd="/", stdout=said).ok:
                raise InfraError(f"the image {tag} does not answer `{' '.join(argv)}`")
            answers[name] = said.read_text(encoding="utf-8", errors="replace")
    fonts = sorted(answers["fonts"].splitlines())
    return {
        "chromium": answers["chromium"].strip(),
        "fonts": len(fonts),
        "fonts_sha256": hashlib.sha256("\n".join(fonts).encode()).hexdigest(),
    }
