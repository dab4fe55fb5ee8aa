"""The server under test as a child process, and requests to it. Requires only Python."""
import ctypes
import functools
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time

START_SECONDS = 60
ANSWER_SECONDS = 45


def kill_with_parent():
    """Makes the kernel kill the server when this script ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Server:
    """The binary on a data directory, or another command, with settings by dotted names."""

    def __init__(self, binary, data_dir, settings, prepare=None, command=None):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TIDEWATCH_")}
        named = {f"TIDEWATCH_{name.replace('.', '__').upper()}": str(value) for name, value in settings.items()}

        def before():
            if prepare:
                prepare()
            # Last, because changing the user resets this setting.
            kill_with_parent()

        command = command or [binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir]
        self.process = subprocess.Popen(
            command, env={**inherited, **named}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, preexec_fn=before)
        self.lines = []
        self.address = None
        self.known = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            line = line.decode(errors="replace").rstrip()
            found = re.search(r"listening on https?://([0-9.:]+)", line)
            if found:
                host, port = found.group(1).rsplit(":", 1)
                self.address = (host, int(port))
                self.known.set()
            self.lines.append(line)
            del self.lines[:-200]
        self.known.set()

    def ready(self):
        """Waits until the server prints its address."""
        self.known.wait(START_SECONDS)
        if self.address is None:
            raise AssertionError("the server did not start:\n" + "\n".join(self.lines[-30:]))
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


@functools.cache
def tls_context(*protocols):
    """A TLS context that accepts the test server's certificate without verification."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(list(protocols))
    return context


class Answer:
    def __init__(self, request, response):
        self.request = request
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    def expect(self, status):
        assert self.status == status, f"{self.request}: {self.status}, not {status}: {self.body[:400]!r}"
        return self.json()


class Client:
    """One keep-alive connection, for a single thread."""

    def __init__(self, address, headers=None, tls=False):
        self.address, self.headers, self.tls, self.connection = address, headers or {}, tls, None

    def connect(self):
        if not self.tls:
            return http.client.HTTPConnection(*self.address, timeout=ANSWER_SECONDS)
        return http.client.HTTPSConnection(*self.address, timeout=ANSWER_SECONDS, context=tls_context("http/1.1"))

    def send(self, method, path, body=None, headers=None):
        """Sends a request; raises `OSError` or `HTTPException` if there is no answer."""
        if self.connection is None:
            self.connection = self.connect()
        content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        # Only one credential in a request.
        head = dict(headers or self.headers)
        if content is not None:
            head["Content-Type"] = "application/json"
        try:
            self.connection.request(method, path, content, head)
            answer = Answer(f"{method} {path}", self.connection.getresponse())
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if answer.headers.get("Connection", "").lower() == "close":
            self.close()
        return answer

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Account:
    """An organization with the token of its user and an admin key."""

    def __init__(self, address, name, tls=False):
        client = Client(address, tls=tls)
        body = {"email": f"{name}@example.com", "password": "correct horse battery", "name": "Ada",
                "organizationName": name}
        self.token = {"Authorization": "Bearer " + client.send("POST", "/api/auth/signup", body).expect(201)["token"]}
        made = client.send("POST", "/api/organization/keys", {"name": "admin", "type": "admin"}, self.token)
        self.key = {"X-API-Key": made.expect(201)["apiKey"]["key"]}
        client.close()


def timestamp(at_ns):
    seconds, fraction = divmod(at_ns, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{fraction:09}Z"
