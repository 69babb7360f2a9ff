"""A profiler that does nothing, at no cost."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pytorch_lightning.profilers import PassThroughProfiler

_NOTHING: AbstractContextManager[None] = nullcontext()


class NoOpProfiler(PassThroughProfiler):
    """Profiles nothing. Lightning's PassThroughProfiler creates a generator for each of the 24 hooks of a step."""

    def profile(self, action_name: str) -> Any:
        return _NOTHING
