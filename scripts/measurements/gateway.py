"""What the gateway costs: time a call, calls a second, memory; and whether its sums are right.

Client and upstream are processes of their own; the gateway runs as it does in a solve, over a trial's socket.
"""

from __future__ import annotations

import contextlib
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandboxes.gateway.client import Gateway, TrialGateway
from sandboxes.gateway.policy import Caps, GatewayConfig, ModelRule, Price, TrialPolicy, Upstream
from scripts.measurements._gateway_load import Job, cut, usage

PAIRS, PAIR_CALLS = 20, 25
STREAMS, THROUGHPUT_CALLS = 8, 7000
LEDGER_CALLS, CUT_PER_CENT = 3000, 30
PRICE = Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)


def measure() -> dict[str, float]:
    """`added_ms`: median of a streamed call through the gateway less that of the same call direct, in turns;
    `rps_8`: calls a second over 8 streams; `rss_mb`: resident memory after more than 10,000 calls;
    `ledger_error`: the trial's USD less the sum worked out by hand, with 30 % of the streams cut.

    `direct_ms` and `direct_rps_8` are the same without the gateway.
    """
    with tempfile.TemporaryDirectory(prefix="cdb-measure-") as scratch, _upstream() as port, _client() as client:
        config = GatewayConfig(upstreams={"fake": Upstream(base_url=f"http://127.0.0.1:{port}", auth="none")})
        with Gateway(config) as gateway:
            with gateway.open(_policy("speed"), Path(scratch) / "speed") as trial:
                through, direct = _in_turns(client, trial, port)
                rate = _rate(client, Job(str(trial.socket), trial.token, 0, THROUGHPUT_CALLS, STREAMS, 0))
                direct_rate = _rate(client, Job(str(port), "", 0, THROUGHPUT_CALLS, STREAMS, 0))
            with gateway.open(_policy("ledger"), Path(scratch) / "ledger") as trial:
                client(Job(str(trial.socket), trial.token, 0, LEDGER_CALLS, STREAMS, CUT_PER_CENT))
            told = trial.summary()
            if told.calls != LEDGER_CALLS:
                raise RuntimeError(f"the gateway recorded {told.calls} calls of {LEDGER_CALLS}")
            assert gateway.pid is not None
            rss = _rss_mb(gateway.pid)
    return {
        "added_ms": round((through - direct) * 1000, 3),
        "direct_ms": round(direct * 1000, 3),
        "rps_8": round(rate, 1),
        "direct_rps_8": round(direct_rate, 1),
        "rss_mb": round(rss, 1),
        "ledger_error": abs(told.cost_known_usd - _by_hand()),
    }


def _policy(name: str) -> TrialPolicy:
    rule = ModelRule(asked="measured", upstream="fake", price=PRICE)
    return TrialPolicy(trial=name, models=(rule,), caps=Caps(usd=1e6, tokens=10**12, requests=10**9))


def _in_turns(client: Any, trial: TrialGateway, port: int) -> tuple[float, float]:
    """Median seconds of a call, through the gateway and direct."""
    through: list[float] = []
    direct: list[float] = []
    for _ in range(PAIRS):
        through += client(Job(str(trial.socket), trial.token, 0, PAIR_CALLS, 1, 0))["times_s"]
        direct += client(Job(str(port), "", 0, PAIR_CALLS, 1, 0))["times_s"]
    return statistics.median(through), statistics.median(direct)


def _rate(client: Any, job: Job) -> float:
    return job.calls / float(client(job)["elapsed_s"])


def _by_hand() -> float:
    """The same prices, applied to what the upstream was told to report."""
    parts = []
    for number in range(LEDGER_CALLS):
        used = usage(number, broken=cut(number, CUT_PER_CENT))
        parts += [used.input * 3.0e-6, used.cache_write * 3.75e-6, used.cache_read * 0.3e-6, used.output * 15.0e-6]
    return math.fsum(parts)


def _rss_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


@contextlib.contextmanager
def _end(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "scripts.measurements._gateway_load", *arguments]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


@contextlib.contextmanager
def _upstream() -> Iterator[int]:
    with _end("upstream") as process:
        assert process.stdout is not None
        yield int(json.loads(process.stdout.readline())["port"])


@contextlib.contextmanager
def _client() -> Iterator[Any]:
    with _end("client") as process:
        assert process.stdin is not None and process.stdout is not None
        sent, came = process.stdin, process.stdout

        def work(job: Job) -> dict[str, Any]:
            sent.write(json.dumps(job._asdict()) + "\n")
            sent.flush()
            told: dict[str, Any] = json.loads(came.readline())
            if told["bad"]:
                raise RuntimeError(f"calls were not answered as they should be: {told['bad']}")
            return told

        yield work
