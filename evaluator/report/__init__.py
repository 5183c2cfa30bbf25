"""The result report: a site of self-contained pages made from the results folders of one or more entries.

`reading` and `solved` bring the folders in, tolerant of what is missing; `pictures` puts media into the site, each
distinct one once; `entries`, `cases`, `criteria` and `trials` turn records into what the pages show, with `patch`,
`timeline` and `citations` for their parts and `sections` for what other steps add; `plots` draws; `put` writes the
files; `page` renders the templates.
"""

from __future__ import annotations

from evaluator.report.page import Writer, write_report, write_waiting

__all__ = ["Writer", "write_report", "write_waiting"]
