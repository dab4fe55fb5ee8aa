"""The way from an agent to the server: passes requests on and remembers them.

The server's kill closes it. Now and then it withholds an answer of the server, so that the agent has to repeat a
request that is already stored.
"""
import contextlib
import dataclasses
import email.message
import http.client
import socket
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from service import ANSWER_SECONDS, Service, free_port

# One acknowledgement of so many is withheld.
WITHHELD_EVERY = 7
# Of one connection, not of the request.
OF_CONNECTION = {"connection", "transfer-encoding", "content-length", "host", "keep-alive", "expect"}


@dataclasses.dataclass
class Exchange:
    """A request, and what the agent was told."""

    method: str
    target: str
    headers: email.message.Message
    body: bytes
    # Of the server's answer.
    status: int | None = None
    # Whether the agent has the answer.
    told: bool = False

    @property
    def is_acknowledged(self) -> bool:
        return self.told and self.status is not None and self.status < 300


class Listener(ThreadingHTTPServer):
    daemon_threads, block_on_close, request_queue_size = True, False, 64

    def __init__(self, wire: "Wire") -> None:
        self.wire = wire
        super().__init__(("127.0.0.1", wire.port), Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """An agent that goes away is no error."""


class Wire:
    def __init__(self, service: Service) -> None:
        self.service = service
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.exchanges: list[Exchange] = []
        self.withheld = 0
        self.acknowledgements = 0
        self.changed = threading.Condition()
        self.under_way = 0
        self.connections: set[socket.socket] = set()
        self.open()

    def open(self) -> None:
        self.listener = Listener(self)
        threading.Thread(target=self.listener.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """Refuses and ends connections, as the kernel does for a process that was killed."""
        self.listener.shutdown()
        self.listener.server_close()
        with self.changed:
            for connection in self.connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def wait_for_request(self, seconds: float) -> bool:
        """Waits until a request is under way."""
        with self.changed:
            return self.changed.wait_for(lambda: self.under_way > 0, seconds)

    def begin(self, exchange: Exchange) -> None:
        with self.changed:
            self.exchanges.append(exchange)
            self.under_way += 1
            self.changed.notify_all()

    def end(self) -> None:
        with self.changed:
            self.under_way -= 1

    def withholds(self, exchange: Exchange) -> bool:
        """Whether this answer is one that gets lost."""
        if exchange.status is None or exchange.status >= 300 or exchange.method != "POST":
            return False
        with self.changed:
            self.acknowledgements += 1
            is_lost = self.acknowledgements % WITHHELD_EVERY == 0
            self.withheld += is_lost
        return is_lost


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Listener

    def setup(self) -> None:
        super().setup()
        with self.server.wire.changed:
            self.server.wire.connections.add(self.connection)

    def finish(self) -> None:
        with self.server.wire.changed:
            self.server.wire.connections.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def pass_on(self) -> None:
        wire = self.server.wire
        exchange = Exchange(self.command, self.path, self.headers, self.read_body())
        wire.begin(exchange)
        try:
            self.answer(exchange)
        except (OSError, http.client.HTTPException):
            # The server is killed, or the agent gone.
            self.close_connection = True
        finally:
            wire.end()

    do_GET = do_POST = pass_on

    def read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, exchange: Exchange) -> None:
        wire = self.server.wire
        address = urllib.parse.urlsplit(wire.service.base).netloc
        headers = {name: value for name, value in self.headers.items() if name.lower() not in OF_CONNECTION}
        # A connection each: an idle one that the server closes must not look like a fault to the agent.
        with contextlib.closing(http.client.HTTPConnection(address, timeout=ANSWER_SECONDS)) as upstream:
            upstream.request(exchange.method, exchange.target, exchange.body, headers)
            answer = upstream.getresponse()
            content = answer.read()
        exchange.status = answer.status
        if wire.withholds(exchange):
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in OF_CONNECTION:
                self.send_header(name, value)
        if answer.status != http.HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        exchange.told = True
