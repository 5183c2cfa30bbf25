"""A bundle: one archive with all that a result stands on, and `cdb verify`, which checks it without trusting it.

    bundle.json                       what is in it, what is not, and the digest over all the rest
    README.md                         the same for people
    results/NAME/                     lock, journal, cases.json, scores, run card, spending, evidence/, built/
    entries/NAME/                     the solve entry: lock, journal, submissions/ with their seals
    start/CASE/project/               starting applications, only where they were asked for

Paths in `cases.json` lead within the bundle, so that `cdb replay results/NAME …` works on an unpacked one.
"""
