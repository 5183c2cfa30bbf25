"""What to try when a build fails for want of something the machine lacks, and how it is recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evaluator.npm_tools import LEGACY_OPENSSL
from evaluator.serve import GOOGLE_FONTS, PROGRAMS

NEXT_VERSION = re.compile(r"Next\.js (\d+)\.")
ASKS_FOR_TURBOPACK = re.compile(r"^> .{0,300}\bnext build\b.{0,300}--turbo", re.MULTILINE)
WEBPACK_BY_CHOICE = 16
"""The major version of next from which webpack has to be asked for."""
MOCKED = "NEXT_FONT_GOOGLE_MOCKED_RESPONSES"
UNOPTIMISED = "--optimization=false"


class BuildRemedy(NamedTuple):
    """The command and the environment of the next attempt, and the flag that says what was done beside the plan."""

    command: list[str]
    env: dict[str, str]
    flag: str


def build_remedy(command: Sequence[str], env: Mapping[str, str], log: str) -> BuildRemedy | None:
    """The first remedy that answers what `log` says and has not been tried; None when nothing would help.

    Old bundlers hash with what OpenSSL 3 keeps behind a switch. next and Angular fetch web fonts while they
    build, and there is no network: next is given stand-ins, Angular leaves the fonts to be asked for by the page.
    """
    same = list(command)
    if "ERR_OSSL_EVP_UNSUPPORTED" in log and "openssl-legacy" not in env.get("NODE_OPTIONS", ""):
        options = f"{env.get('NODE_OPTIONS', '')} {LEGACY_OPENSSL['NODE_OPTIONS']}".strip()
        return BuildRemedy(same, {**env, "NODE_OPTIONS": options}, "openssl_legacy")
    if "from Google Fonts" in log and MOCKED not in env:
        fonts = {MOCKED: f"{PROGRAMS}/{GOOGLE_FONTS}"}
        return BuildRemedy(_by_webpack(command, log), {**env, **fonts}, "fonts_absent")
    if "Inlining of fonts failed" in log and UNOPTIMISED not in command:
        parted = [] if "--" in command else ["--"]
        return BuildRemedy([*command, *parted, UNOPTIMISED], dict(env), "fonts_absent")
    return None


def _by_webpack(command: Sequence[str], log: str) -> list[str]:
    """The build by webpack where `log` is Turbopack's, which does not end when it is given stand-ins for fonts."""
    if "Turbopack" not in log:
        return list(command)
    told = NEXT_VERSION.search(log)
    chosen = ["--webpack"] if told and int(told[1]) >= WEBPACK_BY_CHOICE else []
    if ASKS_FOR_TURBOPACK.search(log):  # the script's own flag would contradict
        return [*command[: command.index("npm")], "npm", "exec", "--no", "--", "next", "build", *chosen]
    parted = [] if "--" in command or not chosen else ["--"]
    return [*command, *parted, *chosen]
