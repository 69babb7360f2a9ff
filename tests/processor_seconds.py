"""A plugin of pytest: the processor seconds of every module of tests, and which of them are long.

python -m pytest -n 4 -p tests.processor_seconds      # after a whole run it writes tests/long_modules.txt

Processor seconds, with those of the processes that a test starts and waits for: other work on the machine moves them
little. `make test-fast` leaves out what is long.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Generator, Mapping
from typing import Any

import pytest

from tests import tiers

MOST = 5.0
"""Processor seconds of a module above which it is long."""
EVER = ("tests/architecture/", "tests/contracts/test_components.py")
"""Beginnings of the paths of what runs before every commit, though it takes long."""
KEY = "processor_seconds"
"""Under which a worker hands over its figures."""


def used() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def counts(item: pytest.Item) -> bool:
    """Whether a test is in the fast tier unless its module is long."""
    marks = {mark.name for mark in getattr(getattr(item, "function", None), "pytestmark", ())}
    return not marks & {tiers.SLOW, tiers.LONG} and not tiers.slow(module_of(item))


def module_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def long_modules(seconds: Mapping[str, float]) -> list[str]:
    """The modules that take more than `MOST`, sorted."""
    return sorted(module for module, used in seconds.items() if used > MOST and not module.startswith(EVER))


def whole(config: pytest.Config) -> bool:
    """Whether a run is of all tests."""
    chosen = config.getoption("keyword") or config.getoption("markexpr")
    return not chosen and config.args_source == pytest.Config.ArgsSource.TESTPATHS


class ProcessorSeconds:
    """Adds up the seconds of each module."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        before = used()
        result = yield
        if counts(item):
            self.seconds[module_of(item)] += used() - before  # type: ignore[assignment]  # a Counter of floats
        return result

    @pytest.hookimpl(optionalhook=True)  # pytest runs without xdist, too
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended, and handed over its figures."""
        self.seconds.update(getattr(node, "workeroutput", {}).get(KEY, {}))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        handed_over = getattr(session.config, "workeroutput", None)
        if handed_over is not None:
            handed_over[KEY] = dict(self.seconds)
        elif whole(session.config):
            tiers.LONG_MODULES.write_text("".join(f"{module}\n" for module in long_modules(self.seconds)))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ProcessorSeconds(), KEY)
