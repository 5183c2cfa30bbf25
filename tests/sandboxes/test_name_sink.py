"""The sink answers every question with "no such name" and writes down what was asked for."""

from __future__ import annotations

import json
import struct
import time

import pytest

from sandboxes.name_sink import MAX_NAMES, answer, names_in, question


def asking(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def test_a_question_is_read_and_answered_with_no_such_name():
    packet = asking("Example.org", 28)
    name, kind, end = question(packet)
    assert (name, kind, end) == ("Example.org", 28, len(packet))
    reply = answer(packet + b"extra", end)
    assert struct.unpack(">HHHHHH", reply[:12]) == (7, 0x8583, 1, 0, 0, 0)
    assert reply[12:] == packet[12:]


@pytest.mark.parametrize("packet", [b"", b"x" * 11, asking("a.b")[:-3], asking("a.b")[:13] + b"\xff", b"\0" * 12])
def test_a_packet_that_is_no_question_is_refused(packet):
    with pytest.raises(ValueError):
        question(packet)


def test_names_are_listed_once_and_a_torn_line_is_left_out():
    log = b'{"name": "a", "type": 1}\n{"name": "a", "type": 28}\n[]\n{"name": "b"}\n{"na'
    assert names_in(log) == ("a", "b")


@pytest.mark.docker
def test_c16_every_name_that_is_asked_for_fails_at_once_and_is_recorded(box, run):
    program = """
import socket, time
for name in ("huggingface.co", "github.com", "huggingface.co", "Raw.GitHubUserContent.com"):
    began = time.monotonic()
    try: print(name, socket.getaddrinfo(name, 443))
    except socket.gaierror as error: print(name, error.errno == socket.EAI_NONAME, time.monotonic() - began < 4)
"""
    wait_until_it_listens(box, run)
    _, out, err = run(box, "python3", "-c", program)
    assert err == "" and [line.split(" ", 1)[1] for line in out.splitlines()] == ["True True"] * 4
    box.freeze()
    assert box.names_asked() == ("huggingface.co", "github.com", "raw.githubusercontent.com")


@pytest.mark.docker
def test_the_record_can_be_neither_stopped_nor_forged_nor_flooded(box, run):
    wait_until_it_listens(box, run)
    program = f"""
import os, signal, socket
for pid in [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
    for number in (signal.SIGKILL, signal.SIGSTOP):
        try: os.kill(pid, number)
        except PermissionError: pass
    try: open(f"/proc/{{pid}}/fd/1", "w").write('{{"name": "forged"}}')
    except OSError: pass
for number in range({MAX_NAMES + 200}):
    try: socket.getaddrinfo(f"n{{number}}.example", 1)
    except OSError: pass
"""
    run(box, "python3", "-c", program)
    names = box.names_asked()
    assert "forged" not in names
    assert 0.4 * MAX_NAMES <= len(names) <= MAX_NAMES and names[0] == "n0.example"


@pytest.mark.docker
def test_other_containers_have_no_sink(make_box, run):
    builder = make_box(role="builder")
    assert run(builder, "sh", "-c", "ps -e -o comm= | grep -c python3")[1] == "0\n"
    assert builder.names_asked() == ()


def wait_until_it_listens(box, run):
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if run(box, "grep", "-q", "0100007F:0035", "/proc/net/udp")[0].ok:
            return
    raise AssertionError("the name sink never listened: " + json.dumps(run(box, "cat", "/proc/net/udp")[1]))
