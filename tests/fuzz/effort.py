"""How many mistakes are made, and what must become of each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, example, settings

from pipelines.errors import CursusError

EXAMPLES = os.environ.get("FUZZ_EXAMPLES")
"""Number of mistakes of each kind; without it, the few that the suite makes, the same each time."""
MOST_SECONDS = 2.0
"""Of computing: a machine that others use takes longer."""

Test = TypeVar("Test", bound=Callable[..., Any])


def effort(few: int) -> settings:
    """Settings of a test that makes `few` mistakes in the suite."""
    unhurried = {"deadline": None, "suppress_health_check": list(HealthCheck)}
    if EXAMPLES is None:
        return settings(max_examples=few, derandomize=True, database=None, **unhurried)
    return settings(max_examples=int(EXAMPLES), print_blob=True, **unhurried)


def with_findings(findings: Sequence[Any]) -> Callable[[Test], Test]:
    """Try the mistakes that were found once before any others."""

    def decorate(test: Test) -> Test:
        for one in reversed(findings):
            test = example(one)(test)
        return test

    return decorate


def refusal_of(action: Callable[[], object]) -> str | None:
    """The sentence with which `action` is refused; None where it is accepted. It may not end in any other way."""
    began = time.process_time()
    message = None
    try:
        action()
    except CursusError as refused:
        message = str(refused)
    seconds = time.process_time() - began
    assert seconds < MOST_SECONDS, f"{seconds:.1f} seconds until: {message}"
    if message is not None:
        assert message.strip() and "\n" not in message, message
        message.encode()
    return message
