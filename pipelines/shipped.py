"""Where the files are that come with the code: the checkout, or the copy of its tree inside the installed package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def shipped_folder() -> Path:
    """The folder that holds `pipelines` itself, and next to it `recipes/`, `params.yaml`, `dvc.yaml` and others."""
    return Path(str(files("pipelines"))).parent


def own_or_shipped(path: Path) -> Path:
    """`path` where it exists, relative to the current directory; else the file of that name that comes with the code,
    such as `recipes/knowledge/scientific_terms.tsv`, if there is one."""
    shipped = shipped_folder() / path
    return shipped if not path.exists() and shipped.exists() else path
