"""`cdb view`: look at results in a browser, while a run goes on too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verbs.options import Json, answer, progress


def view(
    folders: Annotated[list[Path], typer.Argument(help="A run's folder, or results folders.")],
    out: Annotated[
        Path | None, typer.Option(help="Keep the pages here; by default they are removed at the end.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on the loopback address; 0: any free one.")] = 0,
    title: Annotated[str | None, typer.Option()] = None,
    as_json: Json = False,
) -> None:
    """Serve the report on this machine only, and make it anew while a run goes on. Ctrl-C ends it."""
    import tempfile
    import threading

    from bench.errors import UsageError
    from bench.pool import stopping_on_signals
    from evaluator.view import LiveReport, serve

    with tempfile.TemporaryDirectory(prefix="cdb-view-") as folder:
        report = LiveReport(folders, out or Path(folder), title=title, say=progress)
        try:
            server = serve(report.files, report.home, port=port)
        except OSError as error:
            raise UsageError(f"port {port} cannot be used ({error.strerror}); choose another --port, or 0") from error
        with server, stopping_on_signals(server.shutdown):
            answer(as_json, {"address": server.address}, [f"view: {server.address}", "Ctrl-C ends it."])
            watching = threading.Thread(target=report.watch, daemon=True)
            watching.start()
            try:
                server.serve_forever(poll_interval=0.2)
            finally:
                report.stop()
                watching.join(timeout=60)
