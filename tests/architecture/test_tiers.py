"""`make test-fast` leaves out modules that exist, because of what was measured, and never what guards every commit."""

from __future__ import annotations

from tests import tiers
from tests.processor_seconds import EVER, MOST, long_modules
from tests.steps import ROOT


def test_long_modules_exist_and_are_sorted() -> None:
    listed = tiers.LONG_MODULES.read_text(encoding="utf-8").split()
    assert listed == sorted({*listed})
    assert [module for module in listed if not (ROOT / module).is_file()] == []
    assert [module for module in listed if module.startswith(EVER) or tiers.slow(module)] == []


def test_what_takes_longer_than_the_bound_is_long() -> None:
    seconds = {"tests/b.py": MOST + 1, "tests/a.py": MOST + 2, "tests/quick.py": MOST, f"{EVER[0]}c.py": 10 * MOST}
    assert long_modules(seconds) == ["tests/a.py", "tests/b.py"]
