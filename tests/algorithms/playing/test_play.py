"""`algorithms.play`: the command, the page's document, and the security of its server."""

import http.client
import io
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from algorithms import play
from algorithms.games.kuhn_policies import OPPONENTS, from_percentages
from algorithms.kuhn_equilibria import nash
from algorithms.playing import page
from algorithms.policies import json_files
from algorithms.support.server import Server
from kuhn_bridge import INFORMATION_STATES, BridgeError, Policy
from tests.games import LEDUC, from_names

# Headers of every response: nothing is loaded from anywhere but the page itself.
GUARDS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "
    "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

# Files that are served only if onnxruntime-web is installed or an ONNX file is given.
EXTRA = {"/ort/ort.mjs": b"0", "/ort/ort.wasm": b"0", "/policy.onnx": b"0"}


@contextmanager
def serving(source: str = "uniform") -> Iterator[Server]:
    with Server(EXTRA | page.assets(source)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server waits for requests."""
    monkeypatch.setattr(Server, "serve_forever", lambda _: None)


OWN = ("127.0.0.1:{port}",)


def ask(
    server: Server, path: str, *, method: str = "GET", hosts: tuple[str, ...] = OWN
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of a request whose path and Host go out exactly as given."""
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    try:
        connection.putrequest(method, path, skip_host=True)
        for host in hosts:
            connection.putheader("Host", host.format(port=server.server_port))
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_the_command_serves_the_page_until_ctrl_c() -> None:
    command = [sys.executable, "-m", "algorithms.play", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        line = process.stdout.readline()
        url = line.split("nash:1/6: ")[1].split()[0]
        with urllib.request.urlopen(url, timeout=10) as page:
            assert b"<title>Kuhn poker</title>" in page.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0
        assert process.stdout.read() == "stopped\n"


@pytest.mark.usefixtures("stopped")
def test_the_browser_is_opened_unless_no_open_is_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: Queue[str] = Queue()
    monkeypatch.setattr(play.webbrowser, "open", opened.put)
    assert play.main(["uniform", "--no-open"]) == 0
    assert opened.empty()
    capsys.readouterr()
    assert play.main(["uniform"]) == 0
    assert opened.get(timeout=10) == capsys.readouterr().out.split("uniform: ")[1].split()[0]


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("game", ["kuhn", LEDUC])
def test_a_policy_in_memory_is_played_as_a_file_would_be(
    game: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = Policy.random(game, 1)
    served: list[dict[str, bytes]] = []
    monkeypatch.setattr(play, "_server", lambda files, port: served.append(files) or Server(files))
    policy.play(open_browser=False)
    assert capsys.readouterr().out.startswith("Play against the policy: http://127.0.0.1:")
    if game == "kuhn":
        first = json.loads(served[0]["/game.json"])["opponents"][0]
        assert from_names(first["policy"]).table == pytest.approx(policy.table)
    with pytest.raises(BridgeError, match="too large to play"):
        Policy.uniform("phantom_ttt").play(open_browser=False)


def test_a_policy_in_memory_is_played_in_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("builtins.input", lambda question="": "q")
    Policy.uniform("kuhn").play(in_terminal=True)
    assert "the policy" in capsys.readouterr().out


@pytest.mark.usefixtures("stopped")
def test_the_usual_port_or_any_free_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A browser stores totals by address, so the port should stay the same."""

    def port() -> int:
        assert play.main(["--no-open"]) == 0
        return int(capsys.readouterr().out.split("127.0.0.1:")[1].split("/")[0])

    with socket.create_server(("127.0.0.1", 0)) as taken:
        usual = taken.getsockname()[1]
        monkeypatch.setattr(play, "PORT", usual)
        assert port() != usual
    assert port() == usual


def test_the_page_gets_opponents_and_the_costs_of_moves(server: Server) -> None:
    """The given one comes first, and only once; then perfect play and simple styles."""
    game = json.loads(ask(server, "/game.json")[2])
    names = ["Coin flips", "Perfect play", "Never bluffs", "Always bets", "Always checks"]
    assert [opponent["name"] for opponent in game["opponents"]] == names
    tables = [
        nash(Fraction(1, 6)),
        *(from_percentages([row] * 2) for row in list(OPPONENTS.values())[1:]),
    ]
    wanted = [Policy.uniform("kuhn"), *(Policy("kuhn", table) for table in tables)]
    assert [from_names(opponent["policy"]) for opponent in game["opponents"]] == wanted
    assert all(opponent["onnx"] is None for opponent in game["opponents"])
    assert from_names(game["perfect"]) == wanted[1]
    assert game["value"] == pytest.approx(-1 / 18)
    assert game["uniform_nash_conv"] == pytest.approx(11 / 12)
    assert game["costs"]["2p"] == {"CHECK_OR_CALL": pytest.approx(3 / 11), "BET": 0}
    assert list(game["costs"]) == list(INFORMATION_STATES)


def test_the_bands_are_those_of_the_known_equilibria(server: Server) -> None:
    bands = json.loads(ask(server, "/game.json")[2])["equilibrium"]
    assert list(bands) == list(INFORMATION_STATES)
    assert bands["0"]["BET"] == pytest.approx([0, 1 / 3])
    assert bands["0"]["CHECK_OR_CALL"] == pytest.approx([2 / 3, 1])  # the least first
    assert bands["1"] == {"CHECK_OR_CALL": [1, 1], "BET": [0, 0]}
    assert bands["2"]["BET"] == [0, 1]
    assert bands["1pb"]["CHECK_OR_CALL"] == pytest.approx([1 / 3, 2 / 3])
    assert bands["1b"]["CHECK_OR_CALL"] == pytest.approx([1 / 3, 1 / 3])


@pytest.mark.parametrize("source", ["random:7", "cfr:10", "nash:1/3", "random"])
def test_opponents_have_names_that_players_know(source: str) -> None:
    names = {"random:7": "Random habits 7", "nash:1/3": "Perfect play (alpha 1/3)"}
    assert page.described(source) == (names.get(source, source), "")


def test_the_page_gets_only_the_name_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    Policy.random("kuhn", 1).save(path)
    game = json.loads(page.assets(str(path))["/game.json"])
    assert game["opponents"][0]["name"] == "mine.json"
    assert len(game["opponents"]) == 6
    assert str(tmp_path) not in json.dumps(game)


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("game", ["kuhn", "kuhn_poker"])
def test_a_policy_file_is_opened_once(
    game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "mine.json")
    opened = []
    read = json_files.read_bytes

    def counted(name: str, **options: int) -> bytes:
        opened.append(str(name))
        return read(name, **options)

    Policy.random(game, 1).save(path)
    monkeypatch.setattr(json_files, "read_bytes", counted)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for number, option in enumerate(["--terminal", "--no-open"], 1):
        assert play.main([path, option]) == 0
        assert opened == [path] * number


def test_it_is_bound_to_the_loopback_interface(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    with socket.socket() as elsewhere:
        assert elsewhere.connect_ex(("127.0.0.2", server.server_port)) != 0


FOREIGN = (
    ("evil.example:{port}",),
    ("127.0.0.1.evil.example:{port}",),
    ("localhost:1",),
    ("localhost",),
    ("0.0.0.0:{port}",),
    ("",),
    (),
    ("127.0.0.1:{port}", "evil.example"),
)
OUTSIDE = (
    *("/../pyproject.toml", "/../../../../etc/passwd", "/..%2f..%2fpyproject.toml"),
    *("/%2e%2e/%2e%2e/etc/passwd", "/ort/../../package.json", "/./app.js/../__init__.py"),
    *("//etc/passwd", "/..\\..\\pyproject.toml", "/check.js", "/check.py", "/__init__.py"),
    *("/package.json", "/app.js%00.html", "http://127.0.0.1/etc/passwd"),
    *("/ort", "/ort/", "/.", "/..", "/web/", "/index.html/"),
)


@pytest.mark.parametrize(
    ("status", "method", "path", "hosts"),
    [
        *((200, "GET", "/", (f"{name}:{{port}}",)) for name in ("localhost", "LOCALHOST")),
        *((200, method, "/", OWN) for method in ("GET", "HEAD")),
        *((501, method, "/", OWN) for method in ("POST", "TRACE")),
        *((404, "GET", path, OWN) for path in OUTSIDE),
        *((421, "GET", path, h) for h in FOREIGN for path in ("/", "/game.json", "/nowhere")),
    ],
)
def test_only_the_table_is_served_and_only_here_with_security_headers(
    server: Server, status: int, method: str, path: str, hosts: tuple[str, ...]
) -> None:
    got, headers, body = ask(server, path, method=method, hosts=hosts)
    assert got == status
    assert headers.items() >= GUARDS.items()
    assert status == 200 or b"nash_conv" not in body


TEXT = "; charset=utf-8"
TYPES = {
    **dict.fromkeys(("/", "/index.html"), f"text/html{TEXT}"),
    **dict.fromkeys(("/app.js", "/engine.js?v=1", "/ort/ort.mjs"), f"text/javascript{TEXT}"),
    **{"/style.css": f"text/css{TEXT}", "/game.json": f"application/json{TEXT}"},
    **{"/favicon.svg": "image/svg+xml", "/ort/ort.wasm": "application/wasm"},
    "/policy.onnx": "application/octet-stream",
}


@pytest.mark.parametrize("path", TYPES)
def test_files_have_their_types(server: Server, path: str) -> None:
    status, headers, body = ask(server, path)
    assert (status, headers["Content-Type"]) == (200, TYPES[path])
    assert int(headers["Content-Length"]) == len(body) > 0


def raw(server: Server, request: str) -> bytes:
    """The whole response to `request`, sent as it is."""
    with socket.create_connection(server.server_address[:2], timeout=10) as connection:
        connection.sendall(request.replace("HOST", f"localhost:{server.server_port}").encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(("path", "status"), [("/", b"200"), ("/nowhere", b"404")])
def test_a_head_has_no_body(server: Server, path: str, status: bytes) -> None:
    """Over a bare socket: http.client would not read a body that should not be there."""
    answer = raw(server, f"HEAD {path} HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n")
    head, blank, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    assert b"Content-Length: " in head
    assert (blank, body) == (b"\r\n\r\n", b"")


SECOND = "GET /game.json HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("header", [f"Content-Length: {len(SECOND)}", "Transfer-Encoding: chunked"])
def test_a_body_is_never_read_as_a_request(server: Server, method: str, header: str) -> None:
    """The server closes each connection; with unread bytes the client may see a reset."""
    with suppress(ConnectionResetError):
        answer = raw(server, f"{method} / HTTP/1.1\r\nHost: HOST\r\n{header}\r\n\r\n{SECOND}")
        assert answer.count(b"HTTP/1.1 ") == 1


def test_a_browser_that_hangs_up_prints_nothing(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        with socket.create_connection(server.server_address[:2]) as connection:
            linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # close with a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert ask(server, "/")[0] == 200
    assert capfd.readouterr().err == ""


def test_any_other_failure_is_printed(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    try:
        raise ZeroDivisionError("while answering")
    except ZeroDivisionError:
        server.handle_error(None, ("127.0.0.1", 1))
    assert "ZeroDivisionError: while answering" in capfd.readouterr().err


def test_an_idle_browser_does_not_keep_the_server_open() -> None:
    with serving() as server:
        idle = socket.create_connection(server.server_address[:2])
        idle.sendall(f"HEAD / HTTP/1.1\r\nHost: localhost:{server.server_port}\r\n\r\n".encode())
        assert idle.recv(12) == b"HTTP/1.1 200"
        started = time.perf_counter()
    assert time.perf_counter() - started < 5  # its thread would be waited for, 30 seconds long
    idle.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["unifrom"], "did you mean 'uniform'"),
        (["missing.json"], "missing.json"),
        (["--port", "70000"], "want a number from 0 to 65535, not 70000"),
        (["--port", "many"], "invalid int value: 'many'"),
        (["--port", "BUSY"], "cannot use port BUSY: Address already in use; choose another"),
        (["--seed", "1"], "--seed requires --terminal: the page draws its own cards"),
        (["--game", "leduc"], "unknown game 'leduc'"),
        (["heuristic", "--game", LEDUC], "heuristic is a policy of kuhn, not of leduc_poker"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str, refused: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        given = [word.replace("BUSY", str(busy.getsockname()[1])) for word in arguments]
        wanted = message.replace("BUSY", given[-1])
        assert wanted in refused(play.main, ["--no-open", *given])
