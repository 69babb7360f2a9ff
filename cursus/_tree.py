"""The code of an installed package: the wheel holds one top-level package, `cursus`, and inside it the tree of the
checkout (docs/decisions/0078-one-package-in-a-wheel.md).

Imported before anything else of Cursus: it lets `flows`, `tasks` and `pipelines` be found in that tree, before packages
of the same names that belong to others. In a checkout there is no such tree, and nothing to do.
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

TREE = Path(str(files("cursus"))) / "tree"


def make_importable() -> None:
    """Put the tree of the installed package first on the path of this process."""
    if TREE.is_dir() and str(TREE) not in sys.path:
        sys.path.insert(0, str(TREE))


make_importable()
