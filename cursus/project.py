"""The project that a call works on, with the environment of every tool set up for it."""

from __future__ import annotations

import os
from pathlib import Path

from pipelines.errors import CursusError
from tasks.environment import project_root
from tasks.projects.ownership import refuse_foreign_project
from tasks.servers.environment import prepare_environment

Root = str | os.PathLike[str] | None


def prepared_root(root: Root) -> Path:
    """The folder of the project: `root`, or the one that the command line would use.

    A process works on one project: tools read their settings when they are imported. Raises CursusError for another.
    """
    if root is None:
        refuse_foreign_project()
    chosen = project_root() if root is None else Path(root).resolve()
    before = os.environ.get("CURSUS_ROOT")
    if before is not None and Path(before).resolve() != chosen:
        raise CursusError(f"this process works on the project {before}; use another process for {chosen}")
    if not (chosen / "params.yaml").is_file():
        raise CursusError(f"{chosen}: there is no params.yaml here; name the folder of a project")
    prepare_environment(chosen)
    return chosen
