"""The command line: `python -m tidewatch.evaluator module:registry --url URL`."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys
import threading
from types import FrameType

from tidewatch.client import KEY_VARIABLE, URL_VARIABLE
from tidewatch.errors import TidewatchError
from tidewatch.evaluator._registry import Registry
from tidewatch.evaluator._run import Evaluator, EvaluatorOptions

# How soon a signal is noticed.
_SIGNAL_SECONDS = 0.2


def main(arguments: list[str] | None = None) -> int:
    """Runs an evaluator until SIGTERM or SIGINT, which let it finish the rules in progress; a second one ends it."""
    parser = _parser()
    options = parser.parse_args(arguments)
    logging.basicConfig(level=options.log.upper(), format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    # One line for each request would hide the verdicts.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        evaluator = Evaluator(
            _load(options.registry),
            options.url,
            options.key,
            EvaluatorOptions(
                once=options.once,
                poll_seconds=options.poll,
                claim_seconds=options.claim,
                concurrency=options.concurrency,
            ),
        )
    except (ValueError, ImportError, AttributeError) as fault:
        parser.error(str(fault))
    return _run(evaluator)


def _run(evaluator: Evaluator) -> int:
    """Runs in a thread: a handler of signals may not take the locks that the evaluator waits on."""
    failures: list[BaseException] = []
    signalled: list[int] = []

    def work() -> None:
        try:
            evaluator.run()
        except BaseException as failure:
            failures.append(failure)

    def handle(number: int, _frame: FrameType | None) -> None:
        signalled.append(number)
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    thread = threading.Thread(target=work, name="tidewatch-evaluator")
    thread.start()
    while thread.is_alive():
        thread.join(_SIGNAL_SECONDS)
        if signalled:
            evaluator.stop()
    for failure in failures:
        if not isinstance(failure, TidewatchError):
            raise failure
        logging.getLogger("tidewatch.evaluator").error("%s", failure)
    return 1 if failures else 0


def _load(name: str) -> Registry:
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ValueError(f"{name!r} does not name a registry; write it as module:registry")
    # As `python -m` of the module itself would.
    sys.path.insert(0, "")
    registry = getattr(importlib.import_module(module), attribute)
    if not isinstance(registry, Registry):
        raise ValueError(f"{name} is no Registry")
    return registry


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tidewatch.evaluator", description=__doc__)
    parser.add_argument("registry", metavar="module:registry", help="where the functions of the kinds are")
    parser.add_argument("--url", default=os.environ.get(URL_VARIABLE), help=f"the service; else {URL_VARIABLE}")
    parser.add_argument("--key", default=os.environ.get(KEY_VARIABLE), help=f"an integration key; else {KEY_VARIABLE}")
    parser.add_argument("--once", action="store_true", help="end when no more rules are due")
    parser.add_argument("--poll", type=float, default=10.0, metavar="SECONDS", help="between polls; 10")
    parser.add_argument("--claim", type=int, default=120, metavar="SECONDS", help="time for a rule, 5 to 3600; 120")
    parser.add_argument("--concurrency", type=int, default=8, metavar="RULES", help="evaluated at once; 8")
    parser.add_argument("--log", default="info", choices=["debug", "info", "warning", "error"], help="what is logged")
    return parser


if __name__ == "__main__":
    sys.exit(main())
