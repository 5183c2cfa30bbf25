"""What a build lacks on a machine without network is given to it once, and said."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from playwright._impl._driver import compute_driver_executable

import evaluator
from evaluator.build_remedies import build_remedy

NEXT = ["npm", "run", "build"]
FONTS = Path(evaluator.__file__).with_name("google_fonts.js")
GEIST = "https://fonts.googleapis.com/css2?family=Geist+Mono:wght@100..900&display=swap"


def test_next_is_given_stand_ins_for_google_fonts_once() -> None:
    log = "Next.js 15.5.29\nFailed to fetch `Geist Mono` from Google Fonts."
    remedy = build_remedy(NEXT, {"A": "1"}, log)
    assert remedy is not None
    assert (remedy.command, remedy.flag, remedy.env["A"]) == (NEXT, "fonts_absent", "1")
    assert remedy.env["NEXT_FONT_GOOGLE_MOCKED_RESPONSES"] == "/opt/cdb/google_fonts.js"
    assert build_remedy(NEXT, remedy.env, log) is None


@pytest.mark.parametrize(
    ("command", "said", "then"),
    [
        (NEXT, "> next build\nNext.js 16.4.6 (Turbopack)", [*NEXT, "--", "--webpack"]),
        (
            NEXT,
            "> next build --turbopack\nNext.js 15.5.2 (Turbopack)",
            ["npm", "exec", "--no", "--", "next", "build"],
        ),
        (
            ["env", "--chdir=apps/web", *NEXT],
            "> next build --turbopack\nNext.js 16.0.0 (Turbopack)",
            ["env", "--chdir=apps/web", "npm", "exec", "--no", "--", "next", "build", "--webpack"],
        ),
        (
            ["npm", "exec", "--no", "--", "next", "build"],
            "Next.js 16.0.0 (Turbopack)",
            ["npm", "exec", "--no", "--", "next", "build", "--webpack"],
        ),
    ],
)
def test_fonts_that_turbopack_wanted_are_left_to_webpack(command: list[str], said: str, then: list[str]) -> None:
    remedy = build_remedy(command, {}, f"{said}\nFailed to fetch Geist from Google Fonts.")
    assert remedy is not None and remedy.command == then


def test_angular_leaves_fonts_to_the_page() -> None:
    remedy = build_remedy(NEXT, {}, "An unhandled exception occurred: Inlining of fonts failed.")
    assert remedy is not None and remedy.command == [*NEXT, "--", "--optimization=false"]
    assert build_remedy(remedy.command, {}, "Inlining of fonts failed.") is None


def test_options_of_node_are_kept_beside_legacy_openssl() -> None:
    remedy = build_remedy(NEXT, {"NODE_OPTIONS": "--trace-warnings"}, "code: 'ERR_OSSL_EVP_UNSUPPORTED'")
    assert remedy is not None
    assert remedy.env["NODE_OPTIONS"] == "--trace-warnings --openssl-legacy-provider"


def test_another_failure_has_no_remedy() -> None:
    assert build_remedy(NEXT, {}, "error: x is undefined") is None


def test_the_stand_in_declares_the_font_and_asks_for_no_file() -> None:
    script = (
        "const fonts = require(process.argv[1]);"
        "console.log(JSON.stringify([fonts[process.argv[2]], fonts.__esModule ?? null]))"
    )
    node = compute_driver_executable()[0]  # the one that comes with Playwright
    command = [node, "-e", script, str(FONTS), GEIST]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30, env={})
    style, as_module = json.loads(ran.stdout)
    assert "font-family: 'Geist Mono'" in style and "url(" not in style
    assert as_module is None
