"""Takes secrets out of what people read: transcripts, logs, journals, reports. Never out of a submission.

Three kinds are found: keys whose form is known (`sk-ant-…`, `AIza…`, `AKIA…`), whatever stands where a credential
stands (`x-api-key: …`, `SOME_API_KEY=…`, a password in an address), and the secrets that were named to the
`Redactor`, these also in base64, hexadecimal and URL encoding, and cut into pieces by the events of a stream.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

MARK = "[redacted]"
SHORTEST_SECRET = 8
"""A named secret shorter than this would be found in ordinary words."""
LONGEST_GAP = 1200
"""Characters between two pieces of a secret that a stream cut in two."""
SHORTEST_PIECE = 3
HELD_CHARS = 16 * 1024

_FORMS = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:
        sk-(?:ant|proj|or|svcacct|admin|lf|None)-[A-Za-z0-9_-]{10,400}
      | sk-[A-Za-z0-9]{20,}
      | AIza[A-Za-z0-9_-]{30,}
      | ya29\.[A-Za-z0-9_-]{20,}
      | AKIA[A-Z0-9]{16}(?![A-Z0-9])
      | (?:ASIA|AROA|AIDA)(?=[A-Z]*[0-9])[A-Z0-9]{16}(?![A-Z0-9])
      | gh[opsur]_[A-Za-z0-9]{30,}
      | github_pat_[A-Za-z0-9_]{30,}
      | glpat-[A-Za-z0-9_-]{20,}
      | xox[abprs]-[A-Za-z0-9-]{20,}
      | (?:hf|npm|gsk|r8)_[A-Za-z0-9]{30,}
      | (?:xai|pplx)-[A-Za-z0-9]{30,}
      | cdb-[A-Za-z0-9_-]{43}
      | eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}
    )""",
    re.VERBOSE,
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]{1,16384}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
)
_QUOTES = r"""[\\"']{0,3}"""
_HEADER = re.compile(
    rf"""(?ix)(?<![a-z0-9-])
    ((?:x-api-key|x-goog-api-key|api-key|x-auth-token|proxy-authorization|authorization){_QUOTES}\s*[:=,]\s*{_QUOTES}
       (?:(?:bearer|basic|token)\s+)?)
    ([^\s"'\\,;)\]}}]{{6,}})"""
)
_ASSIGNED = re.compile(
    rf"""(?x)(?<![A-Za-z0-9_])
    ([A-Z][A-Z0-9_]*(?:API_KEY|SECRET|SECRET_KEY|ACCESS_KEY|AUTH_TOKEN|OAUTH_TOKEN|_TOKEN|PASSWORD)
       {_QUOTES}\s*[:=]\s*{_QUOTES})
    ([^\s"'\\,;)\]}}]{{8,}})"""
)
_ADDRESS = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{1,100}:)([^\s/@\"']{3,200})(?=@)")
_PLACEHOLDER = re.compile(
    r"(?i)(?:[$<{%*`(\[]|process\.|os\.|env\.|import\.meta|config\.|your[-_ ]?|xxx|none\b|null\b|undefined\b|true\b"
    r"|false\b|string\b|\.\.\.|redacted)"
)


class Redactor:
    """Knows the named secrets. Has no state of its own besides: one may serve a whole run."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets`: values, for example those of the variables that `key_env` names. Short ones are left out."""
        self._secrets = sorted(
            {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}, key=len, reverse=True
        )
        forms = [re.escape(form) for secret in self._secrets for form in _encoded(secret)]
        self._named = re.compile("|".join(sorted(forms, key=len, reverse=True))) if forms else None

    def text(self, text: str) -> str:
        """`text` with every secret replaced by `[redacted]`; doing it twice changes nothing more."""
        if self._named is not None:
            text = self._named.sub(MARK, text)
            for secret in self._secrets:
                text = _without_pieces(text, secret)
        text = _PRIVATE_KEY.sub(MARK, text)
        text = _FORMS.sub(lambda found: MARK if _looks_random(found[0]) else found[0], text)
        for pattern in (_HEADER, _ASSIGNED, _ADDRESS):
            text = pattern.sub(_value_only, text)
        return text

    def bytes(self, data: bytes) -> bytes:
        """The same for bytes of any encoding that contains ASCII; what is no secret stays byte for byte."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def value(self, value: Any) -> Any:
        """The same for every string within a JSON value, keys included; a value under a credential's name goes."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._member(str(key), inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner) for inner in value]
        return value

    def _member(self, key: str, value: Any) -> Any:
        if isinstance(value, str) and value:
            joined = f"{key}: {value}"
            found = _HEADER.match(joined) or _ASSIGNED.match(joined)
            if found and not _PLACEHOLDER.match(found[2]):
                return MARK
        return self.value(value)

    def stream(self) -> StreamRedactor:
        return StreamRedactor(self)


class StreamRedactor:
    """Redacts text that comes in pieces, wherever they are cut; memory stays bounded.

    The last `HELD_CHARS` are held back until more comes or the stream ends.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, piece: str) -> str:
        self._held += piece
        if len(self._held) < 4 * HELD_CHARS:
            return ""
        clean = self._redactor.text(self._held)
        self._held = clean[-HELD_CHARS:]
        return clean[:-HELD_CHARS]

    def end(self) -> str:
        clean, self._held = self._redactor.text(self._held), ""
        return clean


def _encoded(secret: str) -> set[str]:
    """The forms in which a secret may stand in a text: as it is, escaped, in hexadecimal, and in base64 at each of
    the three positions it can have within a longer text, there without the characters that neighbours touch."""
    raw = secret.encode()
    forms = {secret, quote(secret, safe=""), quote(secret), raw.hex(), raw.hex().upper()}
    forms |= {re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quote(secret, safe=""))}
    forms |= {secret.replace("/", "\\/"), secret.replace("+", "\\u002b")}
    for before in range(3):
        padded = base64.b64encode(b"\0" * before + raw).decode()
        begin = -(-before * 8 // 6)
        end = (before + len(raw)) * 8 // 6
        core = padded[begin:end]
        if len(core) >= SHORTEST_SECRET:
            forms |= {core, core.replace("+", "-").replace("/", "_")}
    return forms


def _without_pieces(text: str, secret: str) -> str:
    """Redacts a secret whose pieces, of three characters or more, stand in consecutive events of a stream."""
    start = secret[: max(SHORTEST_PIECE, 4)]
    at = text.find(start)
    if at < 0:
        return text
    out, done = [], 0
    while at >= 0:
        pieces = _pieces(text, secret, at)
        for begin, end in pieces:
            out += [text[done:begin], MARK]
            done = end
        at = text.find(start, max(at + 1, done))
    return "".join(out) + text[done:]


def _pieces(text: str, secret: str, at: int) -> list[tuple[int, int]]:
    """Where the pieces of one split secret lie, the first at `at`; empty when it is not there in full."""
    pieces: list[tuple[int, int]] = []
    matched = 0
    while True:
        length = _common(text, at, secret, matched)
        pieces.append((at, at + length))
        matched += length
        if matched == len(secret):
            return pieces
        rest = secret[matched : matched + SHORTEST_PIECE]
        at = text.find(rest, at + length, at + length + LONGEST_GAP)
        if at < 0:
            return []


def _common(text: str, at: int, secret: str, matched: int) -> int:
    length = 0
    while matched + length < len(secret) and text[at + length : at + length + 1] == secret[matched + length]:
        length += 1
    return length


def _looks_random(found: str) -> bool:
    """Whether a key's body has a part no slug has: `sk-proj-management-tool` is a name, not a key."""
    if not found.startswith(("sk-", "xox", "glpat-")):
        return True
    for run in re.split(r"[-_]", found)[2:] or [found.partition("-")[2]]:
        mixed = re.search(r"\d", run) and re.search(r"[A-Za-z]", run)
        cased = re.search(r"[a-z][A-Z]", run) and re.search(r"[A-Z]", run)
        if len(run) >= 16 or (len(run) >= 6 and mixed) or (len(run) >= 8 and cased):
            return True
    return False


def _value_only(found: re.Match[str]) -> str:
    return found[0] if _PLACEHOLDER.match(found[2]) else found[1] + MARK
