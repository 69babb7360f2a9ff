"""Cursus from Python: the verbs of the command line, typed.

    import cursus

    run = cursus.run(dataset="reviews")                        # what is in the store is not computed again
    print(run.report, run.models)
    model = cursus.load("reviews@champion")                    # or a stage, a fingerprint, a folder, nothing
    model.predict(["Never again.", "Best book of the year."])  # answers, with probabilities where there are some
    print(cursus.lineage("reviews@champion"))                  # the tree from data to the model
    cursus.compare("3f2a", run).differences                    # paired, over the same test examples
    cursus.dataset("reviews").read("train").to_pandas()        # a prepared table

Every function works on the project that `cursus` would work on: CURSUS_ROOT, or the one around the current folder; its
argument `root` names another. Mistakes are raised as `CursusError`, with the sentence that a command would print.
Importing this package imports nothing heavy; docs/python.md describes it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import cursus._tree  # noqa: F401  # before what it makes importable

if TYPE_CHECKING:
    from cursus.ancestors import Lineage, lineage
    from cursus.answers import Model, load
    from cursus.comparisons import Comparison, compare
    from cursus.runs import Run, run
    from cursus.tables import Dataset, dataset
    from pipelines.errors import CursusError
    from pipelines.serving.answering.answering_model import Prediction

__all__ = [
    "Comparison",
    "CursusError",
    "Dataset",
    "Lineage",
    "Model",
    "Prediction",
    "Run",
    "compare",
    "dataset",
    "lineage",
    "load",
    "run",
]

_MODULES = {
    "Comparison": "cursus.comparisons",
    "CursusError": "pipelines.errors",
    "Dataset": "cursus.tables",
    "Lineage": "cursus.ancestors",
    "Model": "cursus.answers",
    "Prediction": "pipelines.serving.answering.answering_model",
    "Run": "cursus.runs",
    "compare": "cursus.comparisons",
    "dataset": "cursus.tables",
    "lineage": "cursus.ancestors",
    "load": "cursus.answers",
    "run": "cursus.runs",
}
"""Name → the module that defines it, which is imported when the name is first used: commands start without them."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'cursus' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
