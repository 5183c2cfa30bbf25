"""Objects of a page that no selector finds: a sound made by `new Audio()` is in no document.

Chromium's debugger lists every living object with a given prototype. The page cannot see that it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page

_MAP = "function() { return this.map(e => { try { return (READ)(e); } catch { return null; } }); }"


@contextmanager
def every_object(page: Page, prototype: str) -> Iterator[Callable[[str], list[Any]]]:
    """Yields a function that applies a JavaScript function of ours to each living object and returns what it gives.

    The prototypes themselves are among them; for what throws the result is None. Raises PlaywrightError."""
    session = page.context.new_cdp_session(page)
    try:
        asked = session.send("Runtime.evaluate", {"expression": prototype})
        found = session.send("Runtime.queryObjects", {"prototypeObjectId": asked["result"]["objectId"]})

        def read(function: str) -> list[Any]:
            told = session.send(
                "Runtime.callFunctionOn",
                {
                    "objectId": found["objects"]["objectId"],
                    "functionDeclaration": _MAP.replace("READ", function),
                    "returnByValue": True,
                },
            )
            return list(told["result"].get("value") or [])

        yield read
    finally:
        with suppress(PlaywrightError):  # the page is gone, and the session with it
            session.detach()
