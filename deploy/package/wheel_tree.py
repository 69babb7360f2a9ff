"""What a wheel holds: one top-level package, `cursus`, and below `cursus/tree` the files of the checkout that commands
need (docs/decisions/0078-one-package-in-a-wheel.md).

An editable installation stays as it is: its packages are those of the checkout.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools.command.build_py import build_py

TOP = "cursus"
CODE = ("flows", "tasks", "pipelines")
SHIPPED = (
    "recipes",
    "params.yaml",
    "anchors.yaml",
    "prefect.yaml",
    "automations",
    "dvc.yaml",
    ".dvc/config",
    ".dvc/.gitignore",
    ".dvcignore",
    "requirements.lock",
    "docs/plans.yaml",
    "docs/claims",
    "docs/lattices",
)
"""Besides code: recipes, default settings, what `cursus init` copies, and the records that `cursus systems` shows."""
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "*.svg", "*.so")


class WheelTree(build_py):
    """Puts the code below `cursus/tree`, with what is shipped alongside it."""

    def run(self) -> None:
        if not self.editable_mode:
            own = [name for name in self.packages if name.split(".")[0] == TOP]
            # the names of top-level packages in the metadata are read from the distribution
            self.packages = self.distribution.packages = own
        super().run()
        if self.editable_mode:
            return
        tree = Path(self.build_lib) / TOP / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        for name in (*CODE, *SHIPPED):
            target = tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if Path(name).is_dir():
                shutil.copytree(name, target, ignore=LEFT_OUT)
            else:
                shutil.copyfile(name, target)
