"""Files that exist only when they are whole."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which replaces `path` at the end of the block; after an exception `path` is what it was."""
    # In the same directory, since a file is replaced in one step only within a file system.
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with part.open("xb") as out:
            yield out
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
