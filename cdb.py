"""The command line: one verb per step, each run by the side it belongs to.

Nothing heavy is imported until a verb runs: a test holds which modules `cdb --help` may load.
Exit codes: 0 done, 1 failed, 2 usage, 3 incomplete (something unscored), 130/143 interrupted.
"""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from bench.errors import CdbError
from bench.exit_codes import told
from verbs.audit import audit_app, calibrate
from verbs.dataset import dataset_app
from verbs.export import export_app, import_app, verify
from verbs.judging import judge, plan, prepare, replay, score, seal
from verbs.machine import clean, demo, doctor
from verbs.results import compare, report
from verbs.solving import agents_app, run_config, solve, status
from verbs.view import view

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    help="Run coding agents on Co-Design Bench and judge them with verdicts that replay.",
)
app.add_typer(dataset_app, name="dataset")
app.add_typer(agents_app, name="agents")
app.add_typer(export_app, name="export")
app.add_typer(import_app, name="import")
app.add_typer(audit_app, name="audit")
app.command()(solve)
app.command("run")(run_config)
_VERBS = (
    status, prepare, plan, judge, score, replay, seal, report, view, compare, verify, calibrate, doctor, clean, demo,
)  # fmt: skip
for _verb in _VERBS:
    app.command()(_verb)


def _say_exit_codes() -> None:
    """End the help of every verb with its exit codes."""
    for group, prefix in ((app, ""), *((g.typer_instance, f"{g.name} ") for g in app.registered_groups)):
        for command in group.registered_commands if group else ():
            name = command.name or (command.callback.__name__ if command.callback else "")
            command.epilog = told(prefix + name)


_say_exit_codes()


def main() -> None:
    """Run the command line; our own errors become one message and their exit code."""
    from bench.parent import end_with_parent

    end_with_parent()
    try:
        app()
    except CdbError as error:
        _fail(str(error), error.exit_code)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}; check the path, its permissions and the disk", 1)


def _fail(message: str, exit_code: int) -> NoReturn:
    from bench.terminal import safe

    print(f"cdb: {safe(message)}", file=sys.stderr)
    raise SystemExit(exit_code)


if __name__ == "__main__":
    main()
