"""Which failures of the engine are worth a second try, and how often."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import requests
from docker.errors import APIError
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

Answer = TypeVar("Answer")
_PASSING = ("device or resource busy", "timed out", "timeout", "deadline exceeded", "connection reset", "eof")


def is_transient(error: BaseException) -> bool:
    """Lost or late answers, and server errors that name a passing state; never an answer about our request."""
    if isinstance(error, APIError):
        status = error.response.status_code if error.response is not None else 0
        text = str(error.explanation).lower()
        return status == 503 or (status >= 500 and any(passing in text for passing in _PASSING))
    return isinstance(error, (requests.ConnectionError, requests.Timeout))


def again(call: Callable[[], Answer]) -> Answer:
    """What `call` answers, asked again as `retrying` does. Raises the last error. For what may be repeated."""
    return retrying()(call)


def retrying() -> Retrying:
    """Up to four tries within about ten seconds. Only for steps that may be repeated."""
    return Retrying(
        retry=retry_if_exception(is_transient),
        stop=stop_after_attempt(4),
        wait=wait_exponential_jitter(multiplier=0.2, max=3.0),
        reraise=True,
    )
