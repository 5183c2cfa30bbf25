"""Applications are served in containers of their own; however they hide their address, they are found."""

from __future__ import annotations

import shutil
import socket
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin

import pytest

from evaluator.app_probe import Listener, listeners
from evaluator.serve import WORKSPACE_TAR, ServedApp, ServeFailed, serve
from evaluator.serve_plan import ServePlan, learn_plan
from sandboxes.engine import engine

APPS = Path(__file__).parent.parent / "apps"
Tricky = Callable[..., tuple[ServePlan, Path]]


@pytest.fixture
def tricky(tmp_path: Path) -> Tricky:
    """A mini server that plays one trick, packed as a build packs it. `instead` replaces its greeting."""

    def make(trick: str, instead: str = "served by") -> tuple[ServePlan, Path]:
        built = tmp_path / f"{trick}-{instead}"
        shutil.copytree(APPS / "servers", built / "tree")
        (built / "tree" / "trick.txt").write_text(trick)
        server = built / "tree" / "server.js"
        server.write_text(server.read_text().replace("served by", instead))
        with tarfile.open(built / WORKSPACE_TAR, "w") as tar:
            tar.add(built / "tree", ".")
        return learn_plan(built / "tree"), built

    return make


def page_of(app: ServedApp, tmp_path: Path, path: str = "") -> str:
    """What the application answers, asked from inside its container."""
    told = tmp_path / "page.html"
    script = "import sys, urllib.request as u; sys.stdout.buffer.write(u.urlopen(sys.argv[1], timeout=10).read())"
    ended = app.sandbox.exec(["python3", "-I", "-c", script, urljoin(app.url, path)], deadline_s=20, stdout=told)
    assert ended.ok, ended
    return told.read_text()


@pytest.mark.docker
@pytest.mark.parametrize(
    "trick",
    [
        "random-port",
        "ipv4-only",
        "ipv6-only",
        "coloured-banner",
        "next-port",
        "silent",
        "late",
        "api",
        "hanging-neighbours",
    ],
)
def test_c68_a_server_is_found_wherever_it_listens(tricky: Tricky, tmp_path: Path, trick: str) -> None:
    plan, built = tricky(trick)
    with serve(plan, built, run="test", case="serve", ready_s=40) as app:
        assert app.url.startswith("http://localhost:")
        assert f"served by {trick}" in page_of(app, tmp_path)


@pytest.mark.docker
def test_c68_a_server_that_never_listens_is_named_with_its_log(tricky: Tricky) -> None:
    plan, built = tricky("never")
    with (
        pytest.raises(ServeFailed, match="serve_timeout: nothing listened within 10 s") as failed,
        serve(plan, built, run="test", case="serve", ready_s=10),
    ):
        pass
    assert failed.value.code == "serve_timeout"
    assert "warming up for ever" in failed.value.log


@pytest.mark.docker
def test_a_server_that_answers_no_page_is_a_serve_error(tricky: Tricky) -> None:
    plan, built = tricky("broken")
    with (
        pytest.raises(ServeFailed, match=r"port 3000 .*HTTP 500") as failed,
        serve(plan, built, run="test", case="serve", ready_s=10),
    ):
        pass
    assert failed.value.code == "serve_error"


@pytest.mark.docker
def test_c69_a_server_that_refuses_a_host_name_is_asked_by_another(tricky: Tricky, tmp_path: Path) -> None:
    plan, built = tricky("picky-host")
    with serve(plan, built, run="test", case="serve", ready_s=20) as app:
        assert app.url == "http://127.0.0.1:3000/"
        assert "served by picky-host" in page_of(app, tmp_path)


@pytest.mark.docker
@pytest.mark.parametrize(("tool", "by_host"), [("vite", True), ("node", False)])
def test_c69_a_server_that_refuses_every_host_name_is_a_serve_error(tricky: Tricky, tool: str, by_host: bool) -> None:
    """A development server's own check is our affair; an application that says the same words is not believed."""
    plan, built = tricky("refuses-hosts")
    with (
        pytest.raises(ServeFailed, match="refuses the host name") as failed,
        serve(plan.model_copy(update={"tool": tool}), built, run="test", case="serve", ready_s=10),
    ):
        pass
    assert (failed.value.code, failed.value.by_host) == ("serve_error", by_host)


@pytest.mark.docker
def test_a_start_command_that_ends_is_not_waited_for(tricky: Tricky) -> None:
    plan, built = tricky("dies")
    began = time.monotonic()
    with (
        pytest.raises(ServeFailed, match="exit status 3") as failed,
        serve(plan, built, run="test", case="serve", ready_s=60),
    ):
        pass
    assert time.monotonic() - began < 30
    assert failed.value.code == "serve_exited"
    assert "cannot find the database" in failed.value.log


@pytest.mark.docker
def test_c70_two_applications_hold_the_same_port_and_each_shows_its_own_page(tricky: Tricky, tmp_path: Path) -> None:
    plan, first = tricky("ipv4-only")
    _, second = tricky("ipv4-only", "other")
    with (
        serve(plan, first, run="test", case="serve") as one,
        serve(plan, second, run="test", case="serve") as two,
    ):
        assert one.url == two.url
        assert "served by ipv4-only" in page_of(one, tmp_path)
        assert "other ipv4-only" in page_of(two, tmp_path)


@pytest.mark.docker
def test_a_static_application_is_served_and_gone_afterwards(tmp_path: Path) -> None:
    tree = tmp_path / "site"
    (tree / "shop").mkdir(parents=True)
    (tree / "shop" / "start.html").write_text("<h1>shop</h1>")
    (tree / "shared.txt").write_text("shared")
    plan = learn_plan(tree)
    with serve(plan, tree, run="test", case="serve") as app:
        assert app.url == "http://127.0.0.1:8080/shop/"
        assert page_of(app, tmp_path) == "<h1>shop</h1>"
        assert page_of(app, tmp_path, "../shared.txt") == "shared"
        assert '"path": "/shop/"' in app.logs()
        container = engine().containers.get(app.container_id)
        assert container.attrs["HostConfig"]["NetworkMode"] == "none"
        assert container.labels["cdb.role"] == "app"
    assert container.id not in {each.id for each in engine().containers.list(ignore_removed=True, all=True)}


@pytest.mark.docker
def test_a_page_that_is_not_there_is_a_serve_error(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    with (
        pytest.raises(ServeFailed, match="404"),
        serve(ServePlan(kind="static"), tmp_path / "site", run="test", case="serve", ready_s=10),
    ):
        pass


@pytest.mark.docker
def test_c68_folders_with_spaces_and_other_alphabets_are_served(tmp_path: Path) -> None:
    page = tmp_path / "site/My App/应用 100%/index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<h1>应用</h1>")
    with serve(learn_plan(tmp_path / "site"), tmp_path / "site", run="test", case="serve", ready_s=10) as app:
        assert app.url.isascii()
        assert page_of(app, tmp_path) == "<h1>应用</h1>"


@pytest.mark.docker
def test_what_our_own_server_says_at_its_end_is_told(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    with (
        pytest.raises(ServeFailed, match="serve_timeout") as failed,
        serve(ServePlan(kind="static", root="nowhere"), tmp_path / "site", run="test", case="serve", ready_s=3),
    ):
        pass
    assert "nowhere is no folder that can be served" in failed.value.log


def test_listening_sockets_are_read_from_the_kernels_tables(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    table.write_text(
        "  sl  local_address rem_address   st\n"
        "   0: 0100007F:1F90 00000000:0000 0A\n"
        "   1: 00000000:0BB8 00000000:0000 0A\n"
        "   2: 0100007F:1F91 0100007F:C000 01\n"
    )
    table6 = tmp_path / "tcp6"
    table6.write_text(
        "  sl  local_address rem_address st\n"
        "   0: 00000000000000000000000001000000:10E1 00000000000000000000000000000000:0000 0A\n"
        "   1: 00000000000000000000000000000000:1435 00000000000000000000000000000000:0000 0A\n"
        "   2: 0000000000000000FFFF00000100007F:1436 00000000000000000000000000000000:0000 0A\n"
    )
    v4, v6 = "127.0.0.1", "::1"
    assert set(listeners([table, table6, tmp_path / "none"])) == {
        Listener(v4, 8080), Listener(v4, 3000), Listener(v6, 4321), Listener(v4, 5173), Listener(v4, 5174)
    }  # fmt: skip


def test_a_listening_socket_of_this_machine_is_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert Listener("127.0.0.1", server.getsockname()[1]) in listeners()
