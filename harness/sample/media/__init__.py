"""Makes the media of the sample cases from text: speech, recordings, annotated screenshots, sketches.

One module per case, named after it (`clinic-booking` → `clinic_booking.py`), with one function

    def make(studio: Studio) -> None

`studio.project` is the case's starting application (served at `studio.url`), `studio.sources` the folder
beside the module that holds its text sources (may not exist), and the rest of `Studio` are the tools.
Results are committed, so nobody needs a speech synthesiser or a browser to build the release.
`scripts/make_sample_media [CASE …]` calls these modules; nothing else imports them.
"""
