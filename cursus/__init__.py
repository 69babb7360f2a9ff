"""Cursus from Python: the verbs of the command line, typed.

    import cursus

    run = cursus.run(dataset="reviews")                        # what is in the store is not computed again
    print(run.report, run.models)
    model = cursus.load("reviews@champion")                    # or a stage, a fingerprint, a folder, nothing
    model.predict(["Never again.", "Best book of the year."])  # answers, with probabilities where there are some
    print(cursus.lineage("reviews@champion"))                  # the tree from data to the model
    cursus.dataset("reviews").read("train").to_pandas()        # a prepared table

Every function works on the project that `cursus` would work on: CURSUS_ROOT, or the one around the current folder; its
argument `root` names another. Mistakes are raised as `CursusError`, with the sentence that a command would print.
Importing this package imports nothing heavy; docs/python.md describes it.
"""

from __future__ import annotations

from cursus.ancestors import Lineage, lineage
from cursus.answers import Model, load
from cursus.runs import Run, run
from cursus.tables import Dataset, dataset
from pipelines.errors import CursusError
from pipelines.serving.answering.answering_model import Prediction

__all__ = ["CursusError", "Dataset", "Lineage", "Model", "Prediction", "Run", "dataset", "lineage", "load", "run"]
