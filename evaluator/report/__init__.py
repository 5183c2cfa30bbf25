"""The result report: one self-contained HTML page made from the results folders of one or more entries.

`reading` brings a folder's files in, tolerant of what is missing; `pictures` embeds each distinct picture once;
`entries`, `cases` and `criteria` turn records into what the page shows; `page` renders the templates.
"""

from __future__ import annotations

from evaluator.report.page import write_report

__all__ = ["write_report"]
