"""The reference agent's tools, on files below the current folder. Runs in the container, standard library only."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

MAX_CHARS = 30_000
MAX_LINES = 2_000
MAX_IMAGE_BYTES = 3_750_000
RUN_S = 120
_IMAGES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}


class Outcome(NamedTuple):
    """What a tool gives back: text, and for a picture its `data:` address."""

    text: str
    image: str = ""


class Refused(Exception):
    """The call cannot be done; the message is for the model."""


def read_file(path: str, offset: int = 1, limit: int = MAX_LINES) -> Outcome:
    """Lines of a text file, numbered, from line `offset` (1 is the first)."""
    text = _existing(path).read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines()
    start = max(1, int(offset))
    shown = lines[start - 1 : start - 1 + min(int(limit), MAX_LINES)]
    numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(shown, start=start))
    left = len(lines) - (start - 1 + len(shown))
    return Outcome(_cut(numbered) + (f"\n[{left} more lines]" if left > 0 else ""))


def list_files(path: str = ".") -> Outcome:
    """Names below a folder, without version control and installed packages."""
    root = _existing(path)
    if not root.is_dir():
        raise Refused(f"{path} is no folder")
    found: list[str] = []
    pending = [root]
    while pending and len(found) < MAX_LINES:
        folder = pending.pop()
        for entry in sorted(folder.iterdir()):
            if entry.is_dir() and not entry.is_symlink():
                if entry.name not in (".git", "node_modules"):
                    pending.append(entry)
            else:
                found.append(str(entry.relative_to(root)))
    return Outcome(_cut("\n".join(sorted(found[:MAX_LINES])) or "[no files]"))


def search(pattern: str, path: str = ".") -> Outcome:
    """Lines that match a regular expression, by ripgrep."""
    argv = ["rg", "--line-number", "--no-heading", "--max-columns", "300", "--regexp", pattern, "--", path]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=RUN_S, check=False)
    if done.returncode > 1:
        raise Refused(done.stderr.strip()[-500:])
    return Outcome(_cut(done.stdout) or "[no match]")


def edit_file(path: str, old: str, new: str) -> Outcome:
    """Put `new` in the place of `old`, which must stand in the file exactly once."""
    file = _existing(path)
    content = file.read_bytes()
    count = content.count(old.encode()) if old else 0
    if count != 1:
        raise Refused(f"`old` stands {count} times in {path}, not once; give more of what is around it")
    file.write_bytes(content.replace(old.encode(), new.encode()))
    return Outcome(f"changed {path}")


def write_file(path: str, content: str) -> Outcome:
    """Write a whole file; folders on the way are made."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
    return Outcome(f"wrote {len(content)} characters to {path}")


def run(command: str, timeout_s: int = RUN_S) -> Outcome:
    """Run a bash command line; what it leaves running is left running."""
    limit = min(max(1, int(timeout_s)), 600)
    try:
        done = subprocess.run(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return Outcome(
            _cut(_decoded(error.stdout)) + f"\n[stopped after {limit} s; start servers with `&` and nohup]"
        )
    return Outcome(_cut(_decoded(done.stdout)) + f"\n[exit code {done.returncode}]")


def view_image(path: str) -> Outcome:
    """A picture, to be looked at."""
    file = _existing(path)
    kind = _IMAGES.get(file.suffix.lower())
    if kind is None:
        raise Refused(f"{path} is no png, jpeg, gif or webp; convert it first, for example with ffmpeg")
    if file.stat().st_size > MAX_IMAGE_BYTES:
        raise Refused(f"{path} is over {MAX_IMAGE_BYTES} bytes; make a smaller copy, for example with ffmpeg")
    return Outcome(f"[{path}]", f"data:image/{kind};base64,{base64.b64encode(file.read_bytes()).decode()}")


TOOLS: dict[str, Callable[..., Outcome]] = {
    tool.__name__: tool for tool in (read_file, list_files, search, edit_file, write_file, run, view_image)
}
_TYPES = {"str": "string", "int": "integer"}


def schemas() -> list[dict[str, Any]]:
    """The tools as chat completions take them, made from the functions themselves."""
    return [_schema(name, tool) for name, tool in TOOLS.items()]


def call(name: str, arguments: dict[str, Any]) -> Outcome:
    """Do a call of the model. Whatever it got wrong comes back as text, for it to mend."""
    if name not in TOOLS:
        return Outcome(f"error: there is no tool {name}; there are {', '.join(TOOLS)}")
    try:
        return TOOLS[name](**arguments)
    except Refused as error:
        return Outcome(f"error: {error}")
    except (OSError, ValueError, TypeError, subprocess.SubprocessError) as error:
        return Outcome(f"error: {type(error).__name__}: {error}")


def _schema(name: str, tool: Callable[..., Outcome]) -> dict[str, Any]:
    told = {key: str(kind) for key, kind in tool.__annotations__.items() if key != "return"}
    defaults = len(tool.__defaults__ or ())
    required = list(told)[: len(told) - defaults]
    properties = {key: {"type": _TYPES[kind]} for key, kind in told.items()}
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": tool.__doc__, "parameters": parameters}}


def _existing(path: str) -> Path:
    file = Path(path)
    if not file.exists():
        raise Refused(f"{path} does not exist")
    return file


def _decoded(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")


def _cut(text: str) -> str:
    """Head and tail of a long text, with a count between."""
    if len(text) <= MAX_CHARS:
        return text
    half = MAX_CHARS // 2
    return f"{text[:half]}\n[… {len(text) - MAX_CHARS} characters left out …]\n{text[-half:]}"
