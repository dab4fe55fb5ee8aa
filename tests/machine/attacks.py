"""Attacks by clients of one organization, or without an account, on a server with little memory."""
import socket
import ssl
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from server import ANSWER_SECONDS, Client, timestamp, tls_context

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_HEADERS = 4

PIPELINES, PIPELINE_SENDS = 300, 5
STREAMS, STREAMS_EACH, STREAMS_CONNECTIONS = 100_000, 100, 500
LOGINS, LOGINS_ALONE = 8_000, 1_500
UNREAD, ROWS, ROW_BYTES = 90, 10_000, 16_000
WEBHOOKS, CHANGES = 1_000, 100
RULES, RULE_TEXTS, RULE_TEXT_BYTES = 400, 200, 4_090
THREADS = 4


class Attacker:
    """Keeps all of its connections open until the end of the `with` block."""

    def __init__(self, address, account, chance):
        self.address, self.account, self.chance, self.open = address, account, chance, []
        self.refused = 0
        self.client = Client(address, account.key, tls=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.open:
            connection.close()
        self.client.close()

    def connect(self, *protocols):
        plain = socket.create_connection(self.address, timeout=ANSWER_SECONDS)
        connection = tls_context(*(protocols or ("http/1.1",))).wrap_socket(plain)
        self.open.append(connection)
        return connection

    def bucket(self, name):
        """Creates a bucket with a source; returns both ids."""
        made = self.client.send("POST", "/api/buckets", {"name": name}).expect(201)["bucket"]["_id"]
        body = {"name": "gauge", "schema": {"level": {"type": "number"}}}
        source = self.client.send("POST", f"/api/buckets/{made}/sources", body).expect(201)
        return made, source["dataSource"]["_id"]

    def send_with_retries(self, method, path, body):
        """Retries after each 503 as the server demands; returns the first other answer."""
        while True:
            answer = self.client.send(method, path, body)
            if answer.status != 503:
                return answer
            self.refused += 1
            threading.Event().wait(float(answer.headers["Retry-After"]))


def head(method, path, key, length):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
             f"Content-Length: {length}", *(f"{name}: {value}" for name, value in key.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def pipelines(attacker):
    """Thousands of pipelined requests on each connection, whose answers are not read."""
    taken = 0
    for path in ("/health", "/no/such/route"):
        requests = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 600
        with ThreadPoolExecutor(4 * THREADS) as pool:
            connections = list(pool.map(lambda _: attacker.connect(), range(PIPELINES)))
        for connection in connections:
            connection.setblocking(False)
        for _ in range(PIPELINE_SENDS):
            for connection in connections:
                try:
                    taken += connection.send(requests)
                except OSError:
                    # The buffer is full, or the server has disconnected a client that does not read.
                    pass
    return f"{2 * PIPELINES} connections, {taken >> 20} MiB of requests sent"


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def post_head(path):
    """`:method`, `:scheme`, `:path` and `:authority`, none of them indexed."""
    text = bytes([0x83, 0x87])
    for name, value in ((0x04, path), (0x01, "localhost")):
        text += bytes([name, len(value)]) + value.encode()
    return text


def open_streams(attacker, count, body=b""):
    """Opens an HTTP/2 connection with `count` requests with unfinished bodies; returns the number sent."""
    connection = attacker.connect("h2", "http/1.1")
    if connection.selected_alpn_protocol() != "h2":
        # Later connections are offered only HTTP/1.1.
        return 0
    try:
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0, b""))
        opened = post_head("/api/auth/login")
        for first in range(0, count, STREAMS_EACH):
            frames = b""
            for nth in range(first, min(count, first + STREAMS_EACH)):
                frames += frame(HEADERS, END_HEADERS, 2 * nth + 1, opened)
                frames += frame(DATA, 0, 2 * nth + 1, body) if body else b""
            connection.sendall(frames)
    except OSError:
        # The server has ended the connection.
        return first
    return count


def streams(attacker):
    """All streams on one connection; then on many connections, each with twice its limit."""
    at_once = open_streams(attacker, STREAMS)
    each = STREAMS // STREAMS_CONNECTIONS
    with ThreadPoolExecutor(THREADS) as pool:
        sent = sum(pool.map(lambda _: open_streams(attacker, each), range(STREAMS_CONNECTIONS)))
    return f"{at_once} on one connection before it ended, {sent} on {STREAMS_CONNECTIONS}"


def logins(attacker):
    """Log-ins with unfinished bodies: some on separate connections, the others on as few as possible."""
    body = b'{"email": "somebody@example.com", "password": "' + b"x" * 2_000
    request = head("POST", "/api/auth/login", {}, len(body) + 1_000) + body

    def stop(_):
        attacker.connect().sendall(request)
        return 1

    shared = LOGINS - LOGINS_ALONE
    with ThreadPoolExecutor(THREADS) as pool:
        # First, because later connections are offered only HTTP/1.1.
        together = pool.map(lambda _: open_streams(attacker, STREAMS_EACH, body), range(shared // STREAMS_EACH))
        sent = sum(together) + sum(pool.map(stop, range(LOGINS_ALONE)))
    return f"{sent} of {LOGINS} started, {LOGINS_ALONE} of them on separate connections"


def unread_answers(attacker):
    """Requests for large answers that are not read."""
    bucket, source = attacker.bucket("wide")
    start = time.time_ns() - ROWS * 1_000_000_000
    each = 500
    # All notes are different, and none compresses by more than half.
    noise = attacker.chance.randbytes(ROWS + ROW_BYTES // 2).hex()
    for first in range(0, ROWS, each):
        points = [{"dataSourceId": source, "timestamp": timestamp(start + nth * 1_000_000_000),
                   "values": {"level": nth}, "metadata": {"note": noise[2 * nth:2 * nth + ROW_BYTES]}}
                  for nth in range(first, first + each)]
        attacker.send_with_retries("POST", "/api/data/batch", {"bucketId": bucket, "dataPoints": points}).expect(201)
    body = f'{{"bucketId": "{bucket}", "limit": {ROWS}, "downsampling": false}}'.encode()
    request = head("POST", "/api/data/query", attacker.account.key, len(body)) + body
    connections = [attacker.connect() for _ in range(UNREAD)]
    for connection in connections:
        connection.sendall(request)
    statuses = [connection.recv(12).decode()[9:] for connection in connections]
    assert set(statuses) <= {"200", "503"}, statuses
    assert "200" in statuses, "some answers start"
    return f"{ROWS} rows of {ROW_BYTES} bytes; {statuses.count('200')} answers started, {statuses.count('503')} refused"


def webhooks(attacker):
    """Changes of a bucket with many webhooks, whose receiver never answers."""
    bucket, _ = attacker.bucket("renamed")
    silent = socket.create_server(("127.0.0.1", 0))
    attacker.open.append(silent)
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
    body = {"url": url, "events": ["bucket.updated"], "retryConfig": {"maxRetries": 10, "backoffMultiplier": 10}}
    for _ in range(WEBHOOKS):
        attacker.send_with_retries("POST", "/api/webhooks", body).expect(201)
    statuses = []
    for change in range(CHANGES):
        body = {"description": f"{change} " + "x" * 4_090}
        statuses.append(attacker.send_with_retries("PATCH", f"/api/buckets/{bucket}", body).status)
    assert set(statuses) <= {200, 403}, set(statuses)
    assert 200 in statuses
    return f"{WEBHOOKS} webhooks, {CHANGES} changes: {statuses.count(200)} taken, {statuses.count(403)} refused"


def rules(attacker):
    """Rules of the largest size, and polls that list them."""
    bucket, source = attacker.bucket("judged")
    parameters = {f"p{nth}": "x" * RULE_TEXT_BYTES for nth in range(RULE_TEXTS)}
    body = {"bucketId": bucket, "dataSourceId": source, "name": "high", "naturalLanguageQuery": "level above 5",
            "evaluation": {"kind": "threshold", "intervalSeconds": 60, "windowSeconds": 60, "dwellSeconds": 0,
                           "inputs": [{"key": "l", "field": "level"}], "parameters": parameters}}
    statuses = [attacker.send_with_retries("POST", "/api/alerts", body).status for _ in range(RULES)]
    assert set(statuses) <= {201, 403}, set(statuses)
    made = statuses.count(201)
    assert made > 0
    path = "/api/evaluations/due?limit=1000"
    polled = sum(len(attacker.send_with_retries("GET", path, None).body) for _ in range(20))
    return f"{made} of {RULES} taken, 20 polls of {polled // 20 >> 10} KiB"


ALL = [
    ("pipelines", pipelines),
    ("open streams", streams),
    ("unfinished log-ins", logins),
    ("unread_answers answers", unread_answers),
    ("pending deliveries", webhooks),
    ("large rules", rules),
]
