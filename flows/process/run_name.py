"""Names of flow runs: what is computed, the same whether a run was requested in the terminal, a form or a schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pipelines.errors import CursusError
from pipelines.lineage.store import Store
from tasks.datasets.planning import resolve_request, store_folder
from tasks.environment import project_root


def request_name(
    dataset: str | None, recipe: str | None, variants: Sequence[str], *, smoke: bool, until: str | None = None
) -> str:
    """`regime on topics, hour, smoke, until general`, with the defaults of params.yaml filled in."""
    try:
        request = resolve_request(project_root(), dataset, recipe, tuple(variants), smoke)
        dataset, recipe, variants = request.dataset, request.recipe, request.variants
    except CursusError:
        pass  # the run itself ends with this error
    what = f"{recipe or 'the default recipe'} on {dataset or 'the default dataset'}"
    return ", ".join([what, *variants, *(["smoke"] if smoke else []), *([f"until {until}"] if until else [])])


def dataset_name(dataset: str | None) -> str:
    """`dataset`, or the default one of params.yaml."""
    try:
        return resolve_request(project_root(), dataset, None, (), False).dataset
    except CursusError:
        return dataset or "the default dataset"


def model_name(find: Callable[[Path, Store], str], requested: str | None) -> str:
    """`regime/classify 3f2a91c0`: recipe, stage and the first digits of the model whose fingerprint `find` returns."""
    root = project_root()
    store = Store(store_folder(root))
    try:
        record = store.find(find(root, store)).provenance
    except CursusError:
        return requested or "the default model"
    return f"{record.recipe}/{record.stage} {record.fingerprint[:8]}"
