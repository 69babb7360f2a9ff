"""Lines whose labels plain text makes for itself: a few steps of each on real text, whose loss is what classes cost."""

from __future__ import annotations

import math

import pytest
import torch
from safetensors.torch import load_file

from pipelines.lineage.results import METRICS
from pipelines.parts.annotations.natural_labels import NaturalLabels
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from tests.contracts.trials import job_for, stages, start_of

LINES = {
    # stage: its line on made labels, by its corruption: natural_labels, repeated_mention, disfluencies, pseudo_words
    "natural_labels/natural": ("marks", "row_classes", 31),
    "pseudo_mentions/mentions": ("repeated", "tag_cross_entropy", 2),
    "pseudo_disfluencies/disfluent": ("noise", "tag_cross_entropy", 3),
    "pseudo_words/words": ("ambiguous", "tag_cross_entropy", 2),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_on_made_labels_trains(name: str) -> None:
    line, loss, classes = LINES[name]
    stage = stages()[name]
    made = stage.lines[line]
    if made.annotations:  # marks that the small text has
        made = made.model_copy(update={"annotations": (NaturalLabels(pattern=r"\b\w+\b", labels=("the", "is")),)})
    tokens = {"tokens": 3 * 64 * 64, "batch_tokens": 64 * 64, "length": 64}
    stage = stage.model_copy(
        update={"lines": {line: made}, "mixing": None, "start": None,
                "budget": stage.budget.model_copy(update=tokens),
                "optimizer": stage.optimizer.model_copy(update={"precision": "32-true"}),
                **{key: getattr(stages()["regime/vectors"], key) for key in ("tokenizer", "backbone")}}
    )  # fmt: skip
    job = job_for(stage, name)
    result = run(job)
    losses = [row[key] for row in read_metrics(job.out / METRICS) for key in row if key.endswith(loss)]
    assert result.steps == 3 and losses
    assert losses[0] == pytest.approx(math.log(classes), rel=0.25), "to a new network all classes are as probable"
    after, before = load_file(job.out / "model.safetensors"), start_of(job)
    assert any(not torch.equal(value, before[key]) for key, value in after.items())
