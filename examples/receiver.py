#!/usr/bin/env python3
"""Receives webhooks, verifies their signature (Standard Webhooks) and prints them.

usage: WEBHOOK_SECRET=whsec_… receiver.py [PORT]

Answers 401 to what the secret did not sign, or what is older than five minutes. Deliveries arrive at least once: what
has been seen is told by its `webhook-id`. Needs nothing but Python.
"""
import base64
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SEEN = set()


def key(secret):
    """The bytes that sign: base64 behind `whsec_`, or the secret's own."""
    return base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()


def is_signed(headers, body, secret):
    sent_at, signatures = headers.get("webhook-timestamp", ""), headers.get("webhook-signature", "")
    if not sent_at.isdecimal() or abs(time.time() - int(sent_at)) > 300:
        return False
    signed = f"{headers.get('webhook-id', '')}.{sent_at}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.digest(key(secret), signed, hashlib.sha256)).decode()
    return any(hmac.compare_digest(expected, signature) for signature in signatures.split())


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        signed = is_signed(self.headers, body, os.environ["WEBHOOK_SECRET"])
        self.send_response(204 if signed else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if signed and self.headers["webhook-id"] not in SEEN:
            SEEN.add(self.headers["webhook-id"])
            print(json.dumps(json.loads(body), indent=2), flush=True)

    def log_message(self, format, *args):
        print(f"{self.address_string()} {format % args}", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 2 or "WEBHOOK_SECRET" not in os.environ:
        sys.exit(__doc__)
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 9000), Receiver).serve_forever()
