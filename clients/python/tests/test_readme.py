"""The README's blocks of Python run, one after another, as a reader would run them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Account

README = Path(__file__).parent.parent / "README.md"
FENCED = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^    TIDEWATCH_KEY=\S+ (python .+)$", re.MULTILINE)


def test_the_readme_runs(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = README.read_text()
    monkeypatch.setenv("TIDEWATCH_URL", account.url)
    monkeypatch.setenv("TIDEWATCH_KEY", account.key)
    monkeypatch.chdir(tmp_path)
    # The names that the blocks leave for those behind them.
    names: dict[str, Any] = {}
    blocks = list(FENCED.finditer(text))
    assert len(blocks) == text.count("```python")
    for block in blocks:
        code, line = block[1], text.count("\n", 0, block.start(1))
        saved = re.match(r"# (\w+\.py)\n", code)
        if saved:
            (tmp_path / saved[1]).write_text(code)
        else:
            # Empty lines before it make a traceback name the line of the README.
            exec(compile("\n" * line + code, README, "exec"), names)
    printed = capsys.readouterr().out
    assert "100 stored; " in printed
    assert "levle" in printed
    assert "101 points" in printed
    assert "groupBy" in printed
    assert "404 Not Found" in printed
    assert names["frame"]["level.max"].max() == 99

    [command] = COMMAND.findall(text)
    _, *arguments = shlex.split(command)
    subprocess.run([sys.executable, *arguments], env={**os.environ, "TIDEWATCH_KEY": names["key"]}, check=True)
    [verdict] = [one for one in account.client.rules.history(names["rule"]["_id"]) if one["kind"] == "verdict"]
    assert verdict["outcome"] == "met"
    names["client"].close()
