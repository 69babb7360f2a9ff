"""The command `cursus`, also as `python -m cursus`."""

from __future__ import annotations

import os

import cursus._tree  # noqa: F401  # before what it makes importable


def main() -> None:
    """Run the command line, on the project around the current folder."""
    from flows.cli.app import app
    from pipelines.errors import CursusError
    from pipelines.safety.garbage_collection import collect_rarely
    from tasks.environment import is_own_project, project_root
    from tasks.projects.ownership import foreign_entry

    collect_rarely()
    try:
        root = project_root()
    except CursusError:
        root = None  # commands that need a project say so
    if root is not None and is_own_project(root) and foreign_entry(root) is None:
        os.environ.setdefault("CURSUS_ROOT", str(root))  # its own parts are components, for every command
    app(prog_name="cursus")


if __name__ == "__main__":
    main()
