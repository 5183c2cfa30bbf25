"""Media of `expense-report`: the travel policy as a PDF and the accountant's marks on a screenshot."""

from __future__ import annotations

import mimetypes
import shutil
from pathlib import Path
from typing import Any

from harness.sample.media.studio import Studio, run


def make(studio: Studio) -> None:
    with studio.page() as page:
        page.set_content((studio.sources / "travel-policy.html").read_text("utf-8"))
        page.pdf(
            path=str(studio.attachments / "travel-policy-2026.pdf"), prefer_css_page_size=True, print_background=True
        )
    built = _build(studio)
    with studio.page() as page:
        page.route("**/*", lambda route: _answer(route, built))
        page.goto("http://localhost/")
        page.get_by_text("Hotel Mirante").first.wait_for()
        studio.annotate(
            page,
            [
                {"around": "tbody tr:nth-child(4) .pill", "pad": 7},
                {
                    "note": "1  Red label “Over limit by €…” here, next to the category, on every expense of a day "
                    "that is above the limit",
                    "at": [478, 496],
                    "width": 240,
                },
                {"from": [474, 548], "to": [262, 560]},
                {"note": "2  Same place: yellow label “Receipt missing”", "at": [478, 622], "width": 240},
                {"around": ".summary .total", "pad": 8},
                {"note": "3  Who has to approve this? Say it right below the total", "at": [668, 306], "width": 196},
                {"from": [866, 322], "to": [940, 290]},
                {"note": "4  “Export CSV” button goes here", "at": [640, 98], "width": 150},
                {"from": [795, 120], "to": [838, 204]},
            ],
            studio.annotations / "report-annotated.png",
        )


def _build(studio: Studio) -> Path:
    """The application built in a copy; returns the folder to serve."""
    copy = studio.scratch / "project"
    shutil.copytree(studio.project, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    run("npm", "ci", "--prefix", str(copy), "--no-audit", "--no-fund")
    run("npm", "run", "build", "--prefix", str(copy))
    return copy / "dist"


def _answer(route: Any, built: Path) -> None:
    path = route.request.url.split("localhost", 1)[1].lstrip("/") or "index.html"
    route.fulfill(path=str(built / path), content_type=mimetypes.guess_type(path)[0] or "text/plain")
