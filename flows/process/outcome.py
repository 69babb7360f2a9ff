"""Result or error of a flow, stored outside Prefect's engine, which loses both when its server becomes unreachable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from pipelines.safety.redaction import redacted_errors

R = TypeVar("R", bound=BaseModel)


@dataclass
class FlowOutcome:
    """Result or error of the latest flow run of this process, once it has ended."""

    result: BaseModel | None = None
    error: BaseException | None = None


LAST = FlowOutcome()


def record_outcome(carry_out: Callable[[], R]) -> R:
    """Return the result of `carry_out`, or raise its error, after storing it in `LAST`."""
    try:
        with redacted_errors():
            result = carry_out()
    except BaseException as error:
        LAST.error = error
        raise
    LAST.result = result
    return result
