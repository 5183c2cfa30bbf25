"""Images by content, the browser server in its image, and what doctor says."""

from __future__ import annotations

import json
import time

import pytest

from bench.errors import InfraError
from sandboxes import doctor, images, machine
from sandboxes.engine import connect, engine
from sandboxes.sandbox import Limits, Mount
from sandboxes.socket_folder import socket_folder

pytestmark = pytest.mark.docker


def test_built_images_are_found_by_their_content_and_nothing_is_missing(capsys):
    assert images.missing() == ()
    assert images.ensure_images()["solver"] == images.image_tag("solver")
    assert capsys.readouterr().err == ""  # nothing was built
    assert images.image_id("browser").startswith("sha256:")


def test_a_changed_source_or_parent_changes_the_tag_and_says_what_to_do(monkeypatch, tmp_path):
    import shutil

    shutil.copytree(images.SOURCES, tmp_path / "images")
    with (tmp_path / "images/desk/Dockerfile").open("a") as file:
        file.write("# changed\n")
    before = images.image_tag("base")
    monkeypatch.setattr(images, "SOURCES", tmp_path / "images")
    assert images.image_tag("base") == before
    assert images.missing() == ("desk", "solver", "browser")
    with pytest.raises(InfraError, match=r"python -m sandboxes\.images"):
        images.image_tag("solver")


def test_images_say_whose_they_are_and_run_as_nobody():
    told = engine().api.inspect_image(images.image_tag("solver"))["Config"]
    assert told["Labels"]["cdb.image"] == "solver" and told["User"] == "10001:10001"


def test_the_browser_serves_one_sandboxed_chromium_behind_a_socket(make_box):
    with socket_folder("test", writable=True) as folder:
        box = make_box(
            role="browser",
            image=images.image_tag("browser"),
            limits=Limits(memory_bytes=1536 * 2**20),
            mounts=[Mount(folder, "/sockets", read_only=False)],
        )
        box.spawn(["node", "/opt/browser/serve_browser.js"], cwd="/")
        until = time.monotonic() + 40
        while not (folder / "browser.json").exists() and time.monotonic() < until:
            time.sleep(0.05)
        told = json.loads((folder / "browser.json").read_text())
        assert told["schema"] == "cdb.browser/1" and told["chromium"].startswith("Chromium ")
        assert len(told["wsPath"]) > 40 and told["sandbox"] is (told["sandboxOffBecause"] == "")
        assert (folder / "browser.sock").is_socket()
        assert (folder.parent.stat().st_mode & 0o777) == 0o700


@pytest.mark.alone
def test_doctor_finds_this_machine_fit_in_ten_seconds():
    began = time.monotonic()
    checks = {check.name: check for check in doctor.run_checks()}
    assert time.monotonic() - began < 10
    for name in ("engine", "isolation", "images", "egress", "sockets"):
        assert checks[name].ok, checks[name]


@pytest.mark.parametrize(
    ("address", "remedy"),
    [("unix:///nonexistent/docker.sock", "no engine is running"), ("tcp://127.0.0.1:1", "not running")],
)
def test_an_engine_that_is_not_there_is_named_with_its_remedy(monkeypatch, address, remedy):
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(InfraError, match=remedy) as raised:
        connect(timeout_s=5)
    assert "docker" in str(raised.value).lower()


def test_only_certificates_the_distribution_lacks_are_carried_into_images(monkeypatch, tmp_path):
    shipped, ours = tmp_path / "shipped", tmp_path / "bundle.pem"
    shipped.mkdir()
    pem = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"
    (shipped / "known.crt").write_text(pem.format("AAAA"))
    ours.write_text(pem.format("AAAA") + pem.format("OURS") + pem.format("OURS"))
    monkeypatch.setattr(machine, "_DISTRIBUTION_CERTIFICATES", shipped)
    monkeypatch.setattr(machine, "_LOCAL_CERTIFICATES", tmp_path / "none")
    monkeypatch.setenv("CDB_CA_BUNDLE", str(ours))
    assert machine.extra_certificates() == (pem.format("OURS").encode(),)
    monkeypatch.setenv("CDB_CA_BUNDLE", str(tmp_path / "missing"))
    with pytest.raises(InfraError, match="CDB_CA_BUNDLE"):
        machine.extra_certificates()
