"""Which routes the tests have called, so that a route without a method or a test is noticed."""

from __future__ import annotations

import httpx


class Routes:
    """Methods and paths of requests."""

    def __init__(self) -> None:
        self.called: set[tuple[str, str]] = set()

    def has(self, method: str, template: str) -> bool:
        """Whether a route was called; `{id}` stands for any segment. A route without placeholders is not mistaken."""
        wanted = template.split("/")
        return any(
            called == method
            and len(segments) == len(wanted)
            and all(
                want == got or (want.startswith("{") and got != "import")
                for want, got in zip(wanted, segments, strict=True)
            )
            for called, segments in ((called, path.split("/")) for called, path in self.called)
        )


class RecordingTransport(httpx.HTTPTransport):
    """Notes each request and sends it."""

    def __init__(self, routes: Routes) -> None:
        super().__init__()
        self._routes = routes

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._routes.called.add((request.method, request.url.path))
        return super().handle_request(request)
