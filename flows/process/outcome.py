"""How a flow ended, kept where Prefect's engine cannot lose it: it forgets result and error when its server is no longer there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

R = TypeVar("R", bound=BaseModel)


@dataclass
class Outcome:
    """Of the latest run of this process: result or error, once it has ended."""

    result: BaseModel | None = None
    error: BaseException | None = None


LAST = Outcome()


def kept(carry_out: Callable[[], R]) -> R:
    """What `carry_out` answers or raises, after it was noted."""
    try:
        result = carry_out()
    except BaseException as error:
        LAST.error = error
        raise
    LAST.result = result
    return result
