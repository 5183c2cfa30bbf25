"""`python -m sandboxes.gateway`: the gateway's process (`--control`), or one trial by hand (`--try MODEL`).

By hand, for people who want to see what an agent says to its model:

    python -m sandboxes.gateway --try claude-sonnet-4-5 --upstream anthropic --folder seen/ --port 8080
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.errors import CdbError
from sandboxes.gateway.policy import (
    Caps,
    GatewayConfig,
    ModelRule,
    TrialPolicy,
    default_upstreams,
    load_config,
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sandboxes.gateway", description=__doc__.splitlines()[0])
    parser.add_argument("--control", type=Path, help="socket to be told trials on")
    parser.add_argument("--config", type=Path, help="upstreams and prices (with --control exactly these, as JSON)")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input does")
    parser.add_argument("--try", dest="model", help="serve one trial for this model until Ctrl-C")
    parser.add_argument("--upstream", default="anthropic")
    parser.add_argument("--folder", type=Path, default=Path("gateway-trial"))
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--usd", type=float, default=1.0)
    options = parser.parse_args(argv)
    if (options.control is None) == (options.model is None):
        parser.error("give either --control or --try")
    from sandboxes.gateway import process

    try:
        if options.control:
            told = (
                GatewayConfig.model_validate_json(options.config.read_bytes()) if options.config else GatewayConfig()
            )
            process.run(told, options.control, with_parent=options.with_parent)
        else:
            config = load_config(options.config) if options.config else GatewayConfig(upstreams=default_upstreams())
            asyncio.run(_by_hand(config, options))
    except CdbError as error:
        print(f"gateway: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


async def _by_hand(config: GatewayConfig, options: argparse.Namespace) -> None:
    from sandboxes.gateway.process import GatewayProcess

    rule = ModelRule(asked=options.model, upstream=options.upstream)
    policy = TrialPolicy(trial="by hand", models=(rule,), caps=Caps(usd=options.usd))
    gateway = GatewayProcess(config)
    told = {
        "do": "open",
        "policy": policy.model_dump(mode="json"),
        "folder": str(options.folder),
        "socket": str(options.folder / "none"),
        "port": options.port,
    }
    opened = await gateway.do(told)
    print(json.dumps({"base_url": f"http://127.0.0.1:{opened['port']}", "token": opened["token"]}), flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print(json.dumps(await gateway.close_trial(opened["id"])), file=sys.stderr)
        await gateway.close()


if __name__ == "__main__":
    raise SystemExit(main())
