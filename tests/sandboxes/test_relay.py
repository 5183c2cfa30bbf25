"""The fallback network: the relay's target is reached, nothing else is, and an internal network alone would not do."""

from __future__ import annotations

import http.server
import ipaddress
import threading
import time
from collections.abc import Iterator

import pytest
from docker.errors import NotFound

from bench.errors import InfraError
from sandboxes.canary import check_no_egress
from sandboxes.engine import engine
from sandboxes.images import image_tag
from sandboxes.owner import OWNER, this_process
from sandboxes.reap import leftovers
from sandboxes.relay import relay

pytestmark = pytest.mark.docker


@pytest.fixture
def gateway() -> Iterator[tuple[str, int]]:
    """A service of the host that the engine's bridge network reaches, as the gateway would be."""
    try:
        config = engine().api.inspect_network("bridge")["IPAM"]["Config"][0]
    except NotFound:
        pytest.skip("this engine has no default bridge")
    # An engine that was started again does not always tell the address it gave itself: the first of the network.
    address = config.get("Gateway") or str(ipaddress.ip_network(config["Subnet"])[1])
    server = http.server.ThreadingHTTPServer((address, 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield address, server.server_address[1]
    server.shutdown()
    server.server_close()


def test_c15_through_the_relay_only_its_target_is_reached(gateway, make_box, run):
    with relay(image_tag("base"), gateway, run="test-relay", case="one") as way:
        tried = check_no_egress(image_tag("base"), run="test-relay", network=way.network)
        assert gateway[0] in {answer.address for answer in tried}
        with make_box(network=way.network) as box:
            answered = run(
                box, "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"http://{way.host}:{way.port}/"
            )
            assert answered[1] == "501", "the service answers that it knows no GET"
            for other in (f"http://{gateway[0]}:{gateway[1]}/", "http://192.0.2.1/", "http://169.254.169.254:1/"):
                assert run(box, "curl", "-s", "-m", "2", other)[0].exit_code in (7, 28), other
            began = time.monotonic()
            assert run(box, "curl", "-s", "-m", "10", "https://huggingface.co/")[0].exit_code == 6
            assert time.monotonic() - began < 5
            assert "huggingface.co" in box.names_asked()
    assert [found for found in leftovers() if found.run == "test-relay"] == []


def test_c15_the_canary_refuses_an_internal_network_whose_bridge_has_an_address():
    labels = {OWNER: str(this_process())}
    network = engine().api.create_network("cdb-test-internal", internal=True, labels=labels)["Id"]
    try:
        with pytest.raises(InfraError, match="a container reached this host at"):
            check_no_egress(image_tag("base"), network=network)
    finally:
        engine().api.remove_network(network)
