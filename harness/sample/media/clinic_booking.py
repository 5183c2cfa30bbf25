"""Media of `clinic-booking`: the receptionist's voice note and her marks on a screenshot of the form."""

from __future__ import annotations

from harness.sample.media.studio import Studio


def make(studio: Studio) -> None:
    studio.speak(
        studio.sources / "voice-note.txt",
        studio.attachments / "voice-note.mp3",
        voice="en-gb+f3",
        words_per_minute=172,
    )
    with studio.page(1280, 1340) as page:
        page.goto(studio.url)
        page.get_by_role("button", name="Tue 15 Sep, 09:00").click()
        page.mouse.move(0, 0)
        studio.annotate(
            page,
            [
                {"around": "#details .fields > :nth-child(1)", "pad": 12},
                {"note": '1  Tick box "This is a new patient" above the name. When ticked, a field '
                 '"Date of birth" below.', "at": [480, 1196], "width": 350},
                {"from": [478, 1232], "to": [400, 1204]},
                {"around": ".summary__row--total", "pad": 6},
                {"note": '2  "First visit fee" gets its own line here, above the total', "at": [560, 228],
                 "width": 215},
                {"from": [778, 272], "to": [844, 328]},
                {"note": "3  If we must refuse, say why here, just above the button", "at": [560, 420],
                 "width": 215},
                {"from": [778, 440], "to": [842, 372]},
                {"around": ".slots > :nth-child(17)", "pad": 4},
                {"note": "A new patient must not get a time that is too short, like this one",
                 "at": [560, 690], "width": 250},
                {"from": [556, 718], "to": [382, 622]},
            ],
            studio.annotations / "booking-form.png",
        )
