"""What the pages of an audit share: escaping templates, a policy that lets nothing else in, and their pictures."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from evaluator.report.visible import visible

TEMPLATES = Path(__file__).parent.parent / "templates"
WIDEST = 1100
QUALITY = 72
BUDGET_BYTES = 90_000_000
MOST_PIXELS = 60_000_000


def render(template: str, style: str, script: str, **told: Any) -> str:
    """A self-contained page. Every text in `told` is made visible and escaped; only this style and script run."""
    css, js = ((TEMPLATES / name).read_text(encoding="utf-8") for name in (style, script))
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_finalize,
    )  # fmt: skip
    page = environment.get_template(template)
    return page.render(policy=_policy(css, js), style=Markup(css), script=Markup(js), **told)


def json_island(value: Any) -> Markup:
    """JSON for a script element that is data: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _finalize(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _policy(style: str, script: str) -> str:
    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"

    rules = ("default-src 'none'", "img-src data:", f"style-src {source(style)}", f"script-src {source(script)}")
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


class Album:
    """Pictures of a page by key, each once: made smaller, and without anything but their pixels."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self.uris: dict[str, str] = {}
        self.left_out = 0
        self._room = budget_bytes
        self._by_file: dict[Path, str] = {}

    def take(self, folder: Path, name: str | None) -> str:
        """The key of a picture below `folder`; empty where there is none, it cannot be read, or room is used up."""
        if not name:
            return ""
        path = (folder / name).resolve()
        if path not in self._by_file:
            self._by_file[path] = self._load(path) if path.is_file() else ""
        return self._by_file[path]

    def _load(self, path: Path) -> str:
        content = path.read_bytes()
        key = hashlib.sha256(content).hexdigest()[:16]
        if key in self.uris:
            return key
        small = _smaller(content)
        if small is None or len(small) > self._room:
            self.left_out += 1
            return ""
        self._room -= len(small)
        self.uris[key] = f"data:image/webp;base64,{base64.b64encode(small).decode('ascii')}"
        return key


def _smaller(content: bytes) -> bytes | None:
    """The picture as WebP of at most `WIDEST` pixels' width; None where it cannot be read."""
    try:
        with Image.open(io.BytesIO(content)) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                return None
            picture = opened.convert("RGB")
        if picture.width > WIDEST:
            picture = picture.resize((WIDEST, max(1, round(picture.height * WIDEST / picture.width))))
        out = io.BytesIO()
        picture.save(out, "WEBP", quality=QUALITY, method=3)
        return out.getvalue()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
