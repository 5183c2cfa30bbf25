"""Media of `task-board`: a recording of the studio's old board, and marks on a screenshot of the new one."""

from __future__ import annotations

from typing import Any

from harness.sample.media.studio import Recording, Studio


def make(studio: Studio) -> None:
    _recording(studio)
    with studio.page() as page:
        page.goto(studio.url)
        studio.annotate(
            page,
            [
                {"around": "[data-column=progress] .column__count", "pad": 9},
                {"around": "[data-column=review] .column__count", "pad": 9},
                {"note": "A  Counter with the limit goes here, in these two columns. Same limits, same "
                 "colour as in the film", "at": [500, 560], "width": 290},
                {"from": [590, 556], "to": [598, 148]},
                {"from": [740, 556], "to": [896, 148]},
                {"around": "[data-column=done] .card:nth-child(2) .card__foot", "pad": 8},
                {"note": "B  The note from the film is shown on the card, down here. The search should "
                 "find words in it too", "at": [970, 540], "width": 270},
                {"from": [1120, 536], "to": [1112, 388]},
                {"from": [1010, 536], "to": [1006, 66]},
            ],
            studio.annotations / "board.png",
        )


def _recording(studio: Studio) -> None:
    """The old board's rules, a card that goes over the limit, and one that is delivered: about 12 s."""
    with studio.page(960, 600) as page:
        page.set_content((studio.sources / "old-board.html").read_text(encoding="utf-8"))
        film = Recording(page, studio.scratch / "frames")
        film.at = (700.0, 330.0)
        film.hold(0.4)
        _go(film, page, "#rules-button", 0.6)
        page.mouse.click(*film.at)
        film.hold(2.1)
        page.mouse.click(*film.at)
        film.hold(0.2)
        _go(film, page, "#Springflyer", 0.6)
        page.mouse.down()
        film.glide(355, 300, 0.8)
        page.mouse.up()
        film.hold(1.3)
        _go(film, page, "#Pricelist", 0.5)
        page.mouse.down()
        film.glide(830, 210, 0.8)
        page.mouse.up()
        film.hold(0.7)
        film.type("500 copies, boxed")
        film.hold(0.3)
        _go(film, page, ".ask .go", 0.5)
        page.mouse.click(*film.at)
        film.hold(1.6)
        studio.encode(film.frames, studio.attachments / "old-board.mp4")


def _go(film: Recording, page: Any, target: str, seconds: float) -> None:
    box = page.locator(target).bounding_box()
    film.glide(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, seconds)
