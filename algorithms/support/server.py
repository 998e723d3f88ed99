"""A server for one page, for this machine only: a fixed table of files, nothing from disk.

A request can only name an entry of the table, so there is no path to traverse and no directory to
list. The `Host` header must name this machine, so that another site cannot read the page by
pointing its own name here (DNS rebinding).
"""

import sys
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePath
from socketserver import TCPServer
from typing import Any

from algorithms.support.errors import UsageError

LOOPBACK = "127.0.0.1"
OWN_NAMES = (LOOPBACK, "localhost")
MIME_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".onnx": "application/octet-stream",
}
HEADERS = {
    # onnxruntime-web compiles WebAssembly
    "Content-Security-Policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "
    "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Connection": "close",  # so that the body of a request is never read as the next request
}


class Server(ThreadingHTTPServer):
    """Serves `files`, the contents by paths such as `/index.html`, on the loopback interface."""

    def __init__(self, files: Mapping[str, bytes], *, port: int = 0) -> None:
        self.files = files
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise UsageError(f"cannot use port {port}: {error.strerror}; choose another") from None

    def server_bind(self) -> None:
        """Bind without the name lookup of `HTTPServer`, which can take seconds offline."""
        TCPServer.server_bind(self)
        self.server_name = LOOPBACK
        self.server_port = self.socket.getsockname()[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report all errors except closed connections."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if not self._is_own_host():
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "Only for this machine")
            return
        path = self.path.partition("?")[0]
        path = "/index.html" if path == "/" else path
        body = self.server.files.get(path)
        if body is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", MIME_TYPES[PurePath(path).suffix])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815  # the name that http.server looks up

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def version_string(self) -> str:
        return "kuhn-bridge"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """No-op: requests are not logged."""

    def _is_own_host(self) -> bool:
        hosts = self.headers.get_all("Host", [])
        name, _, port = hosts[0].partition(":") if len(hosts) == 1 else ("", "", "")
        return name.lower() in OWN_NAMES and (port or "80") == str(self.server.server_port)
