"""How often processes look for garbage."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from pipelines.safety.garbage_collection import RARELY, collection_paused


def test_nothing_is_collected_within_a_pause_and_later_what_was_there_is_left_out() -> None:
    gc.unfreeze()
    assert gc.isenabled()
    with collection_paused():
        assert not gc.isenabled()
        kept = [[] for _ in range(RARELY)]  # type: ignore[var-annotated]
    assert gc.isenabled() and gc.get_freeze_count() >= len(kept)
    gc.unfreeze()


def test_a_pause_ends_with_an_error_and_inside_another_leaves_that_one() -> None:
    with pytest.raises(ImportError), collection_paused():
        raise ImportError
    assert gc.isenabled()
    with collection_paused():
        with collection_paused():
            pass
        assert not gc.isenabled()
    gc.unfreeze()


@pytest.mark.parametrize("module", ["cursus", "flows.process.execute"])
def test_processes_that_import_as_they_go_collect_rarely(module: str) -> None:
    # the last call before the process would begin its work, made the end of it
    code = f"""
import gc, runpy, sys
import pipelines.safety.garbage_collection as collection
original = collection.collect_rarely
def collect_rarely():
    original()
    print(gc.get_threshold()[0])
    raise SystemExit
collection.collect_rarely = collect_rarely
sys.argv = ["{module}", "regime", "{{}}", "1"]
runpy.run_module("{module}", run_name="__main__")
"""
    # a session of its own: a flow ends the processes of its session with itself
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read().split() == [str(RARELY)]
