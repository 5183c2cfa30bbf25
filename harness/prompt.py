"""What an agent is told: the request verbatim, then where things lie."""

from __future__ import annotations

from bench.task import Task
from harness.digests import text_paths
from sandboxes.sandbox import WORKSPACE


def prompt(task: Task) -> str:
    """The complete prompt: every entry of user_queries.json in order, byte for byte, then the asset paths.

    The request is never formatted, so braces, quotes and template marks in it stay what they are.
    """
    lines = [*task.queries, _footer(task)]
    return "\n\n".join(lines)


def typed_prompt(task: Task) -> str:
    """The same for an agent that takes a leading slash for a command of its own: then a word goes before it."""
    told = prompt(task)
    return f"Task:\n\n{told}" if told.lstrip().startswith("/") else told


def _footer(task: Task) -> str:
    lines = [
        "---",
        f"The application's source is in {WORKSPACE}, which is also your current folder. In the request, a path",
        f"that begins with `project/` means {WORKSPACE}/. Change the application in place; leave the result there.",
        "There is no network.",
    ]
    lines += [f"Annotated screenshot: {WORKSPACE}/{name}" for name in task.annotations]
    digests = text_paths(task)
    for name in task.attachments:
        lines.append(f"Attachment: {WORKSPACE}/{name}")
        if name in digests:
            lines.append(f"  What is in it, as text, with pictures in the same folder: {digests[name]}")
    return "\n".join(lines) + "\n"
