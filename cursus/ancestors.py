"""`cursus.lineage`: what a model was made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cursus.project import Root, prepared_root
from pipelines.lineage.provenance import Provenance


@dataclass(frozen=True)
class Lineage:
    """The ancestry of a model. As a string, it is the tree that `cursus lineage` prints."""

    fingerprint: str
    records: Mapping[str, Provenance]
    """Fingerprint → record of the model and of all that it was made from, parents before children."""
    tree: str

    def __str__(self) -> str:
        return self.tree

    def __repr__(self) -> str:
        return f"<cursus.Lineage {self.fingerprint[:12]}: {len(self.records)} steps>"


def lineage(reference: str | None = None, *, dataset: str | None = None, root: Root = None) -> Lineage:
    """The ancestry of the model that `reference` names, as `cursus.load` reads it, but for folders.

    Raises CursusError for a reference that names nothing.
    """
    folder = prepared_root(root)
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.models.ancestry import ancestry, resolve
    from tasks.models.ancestry import lineage as tree
    from tasks.models.default import default_model

    store = Store(store_folder(folder))
    if reference is None:
        reference = default_model(folder, store, dataset).fingerprint
    fingerprint = resolve(folder, store, reference)[1]
    return Lineage(fingerprint, ancestry(store, fingerprint), tree(folder, store, reference))
