"""Which state of a dataset's files DVC has found up to date: it takes seconds to find that again, and is not asked.

    .cursus/checked_data/<dataset>     a digest of the states of all files that DVC compares

As DVC does, this takes a file whose inode, size and times are as they were for unchanged.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from pipelines.corpora.steps.pinned_sources import pin_path
from pipelines.corpora.steps.step import prepared
from pipelines.lineage.disk import unique_temporary_path, write_text_atomically
from pipelines.lineage.file_states import changed_before, digest_of, latest_trusted_time, states_of, tree
from tasks.environment import private_state_folder

UNFINISHED = frozenset({".unfinished"})
"""Folder with the work of interrupted steps, which is no output of a stage."""
SETTINGS = ("params.yaml", "dvc.yaml", ".dvcignore", ".dvc/config", ".dvc/config.local")
RWLOCK = Path(".dvc", "tmp", "rwlock")
"""DVC's table of the paths that its processes use."""


class DataCheck:
    """A check of a dataset by DVC, which begins when this is made."""

    def __init__(self, dataset: str, root: Path) -> None:
        state = private_state_folder(root)
        self._record = state / "checked_data" / dataset
        self._dataset, self._root = dataset, root
        self._time = latest_trusted_time(state)
        self._digest = self._present()

    def is_known(self) -> bool:
        """Whether DVC has found exactly this state up to date, and none of its processes uses any path."""
        try:
            table = (self._root / RWLOCK).read_text(encoding="utf-8")
        except OSError:
            table = ""
        with suppress(OSError, ValueError):
            return table.strip() in ("", "{}") and self._record.read_text(encoding="utf-8") == self._digest
        return False

    def remember(self) -> None:
        """Record that DVC has found the state up to date, unless it or anybody has changed something meanwhile."""
        paths = self._paths()
        if self._present() == self._digest and all(changed_before(path, self._time) for path in paths):
            with suppress(OSError):
                self._record.parent.mkdir(mode=0o700, exist_ok=True)
                write_text_atomically(self._record, self._digest, unique_temporary_path(self._record))

    def _present(self) -> str:
        return f"dvc {version('dvc')} {digest_of(states_of(self._paths()))}"

    def _paths(self) -> list[str]:
        return [*(str(self._root / name) for name in SETTINGS), *data_paths(self._dataset, self._root)]


def data_paths(dataset: str, root: Path) -> list[str]:
    """The files and folders of a prepared dataset: pin, tables, outputs of all steps, and what DVC records of them."""
    return [*tree(str(prepared(dataset, root)), UNFINISHED), str(pin_path(dataset, root)), str(root / "dvc.lock")]
