"""No way out of a container, proved on this machine, and the proof itself proved."""

from __future__ import annotations

import json

import pytest

from bench.errors import InfraError
from sandboxes import canary
from sandboxes.images import image_tag
from sandboxes.sandbox import SandboxSpec

pytestmark = pytest.mark.docker


def test_no_address_of_this_host_is_reached():
    tried = canary.check_no_egress(image_tag("base"))
    assert {answer.address for answer in tried} == set(canary.host_addresses())
    assert "127.0.0.1" in {answer.address for answer in tried}
    assert all(answer.answer != "reached" for answer in tried)


def test_a_container_that_reaches_the_host_stops_everything(monkeypatch):
    class Leaky(canary.DockerSandbox):
        def _create(self):
            from sandboxes.engine import engine
            from sandboxes.hardening import creation

            arguments = creation(self.spec, self.name)
            arguments.container.pop("hostname", None)
            arguments.host.pop("sysctls", None)
            config = engine().api.create_host_config(**{**arguments.host, "network_mode": "host"})
            return engine().api.create_container(host_config=config, **arguments.container)["Id"]

    monkeypatch.setattr(canary, "DockerSandbox", Leaky)
    with pytest.raises(InfraError, match=r"reached this host at .*127\.0\.0\.1"):
        canary.check_no_egress(image_tag("base"))


def test_a_canary_that_cannot_sing_is_not_taken_for_silence(monkeypatch):
    monkeypatch.setattr(canary, "_TRY", "raise SystemExit('no voice')")
    with pytest.raises(InfraError, match="no voice"):
        canary.check_no_egress(image_tag("base"))


def test_a_trial_has_no_route_no_name_service_and_no_interface_but_loopback(box, run):
    probe = """
import json, os, socket
def tries(family, address):
    try:
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(2); s.connect(address); return "reached"
    except OSError as error:
        return error.__class__.__name__ + ":" + str(error.errno)
try: name = socket.getaddrinfo("example.org", 80) and "resolved"
except OSError: name = "unresolved"
print(json.dumps({
  "interfaces": os.listdir("/sys/class/net"),
  "routes": open("/proc/net/route").read().count("\\n") - 1,
  "metadata": tries(socket.AF_INET, ("169.254.169.254", 80)),
  "ipv6": tries(socket.AF_INET6, ("2001:db8::1", 80)),
  "name": name}))
"""
    _, out, err = run(box, "python3", "-c", probe)
    told = json.loads(out or err)
    assert told["interfaces"] == ["lo"] and told["routes"] == 0
    assert told["metadata"] == "OSError:101" and told["ipv6"].startswith("OSError") and told["name"] == "unresolved"


def test_the_spec_asks_for_no_network_unless_told():
    assert SandboxSpec(role="solver", image="x", run="y").network_of is None
