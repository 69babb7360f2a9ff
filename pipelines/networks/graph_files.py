"""Files of graphs of entities as an option of a part: read, and so checked, when a recipe is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BeforeValidator

from pipelines.errors import DataError
from pipelines.networks.entity_graph import read_graph
from pipelines.shipped import own_or_shipped


def graph_paths(files: tuple[Path, ...]) -> tuple[Path, ...]:
    """Where `files` are: relative to the current directory, or else to what is shipped."""
    return tuple(own_or_shipped(one) for one in files)


def _listed(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else [value]


def _are_graphs(value: tuple[Path, ...]) -> tuple[Path, ...]:
    """Raises ValueError with the file and the line of what is no fact."""
    paths = graph_paths(value)
    if all(one.is_file() for one in paths):  # a missing file is refused where the recipe is
        try:
            read_graph(paths)
        except DataError as error:
            raise ValueError(str(error)) from None
    return value


GraphFiles: TypeAlias = Annotated[tuple[Path, ...], BeforeValidator(_listed), AfterValidator(_are_graphs)]
"""One file or several."""
