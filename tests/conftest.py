"""Real text, real tables and a trained tokenizer, made once for all tests of the core."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tasks.environment import QUIET

# before torch is imported anywhere: one thread that sleeps while it waits, and no tool that phones home
os.environ.update({**QUIET, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"})

# processes of tests import hundreds of our modules, and would compile them anew each time
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# once OpenVINO has computed in a process, a DataLoader with workers ends it by a segmentation fault: its runtimes are
# tested in a process of their own (tests/pipelines/serving/runtimes/test_openvino.py)
if "CURSUS_TEST_OPENVINO" not in os.environ:
    sys.modules.update(dict.fromkeys(("openvino", "nncf")))  # type: ignore[arg-type]  # as if they were not installed

from pipelines.lineage.provenance import DataSource
from pipelines.safety.garbage_collection import collect_rarely
from tests import shared_folders, tiers  # noqa: F401  # before there are workers, which share its folder
from tests.small_corpus import documents, write_tables

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

collect_rarely()  # an eighth of the processor's time of the tests that compute


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what `-m` does not ask for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put every test into its tier, and the groups into the order in which they begin."""
    modules = {item: item.nodeid.partition("::")[0] for item in items}
    long = {*tiers.LONG_MODULES.read_text(encoding="utf-8").split()}
    for item, module in modules.items():
        if tiers.slow(module):
            item.add_marker(tiers.SLOW)
        if module in long:
            item.add_marker(tiers.LONG)
    items.sort(key=lambda item: tiers.turn_of(modules[item]))


@pytest.hookimpl(optionalhook=True)  # pytest runs without xdist, too
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep groups together. Marks would not do it: pytest 9.2 ignores the names that xdist writes them into (#1386)."""
    from xdist.scheduler.loadgroup import LoadGroupScheduling

    class Groups(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return tiers.group_of(nodeid.partition("::")[0])

    return Groups(config, log)


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The six prepared tables of a small dataset with three labels."""
    return write_tables(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="session")
def sources(tables: dict[str, Path]) -> dict[str, DataSource]:
    """The tables as a plan knows them."""
    return {
        name: DataSource(digest=f"{number:032x}", path=str(path)) for number, (name, path) in enumerate(tables.items())
    }


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    """A WordPiece tokenizer of 512 tokens, trained on real text."""
    from pipelines.parts.tokenizers.wordpiece import WordPiece

    return WordPiece(vocab_size=512).train(documents("logging", "argparse", "email", "json"))
