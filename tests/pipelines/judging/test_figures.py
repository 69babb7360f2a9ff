"""Figures as scores of samples: against their definitions by hand, and as every judge declares them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from pipelines.components import discover
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.figures import (
    RecordedFigure,
    best_layer_score,
    expected_layer,
    likelihood_figures,
    middle_mean,
    row_mean,
)
from pipelines.judging.probes import Probe
from pipelines.judging.samples import SAMPLES, key_of, read_samples, write_samples
from pipelines.task_families import TaskFamily

TEXTS = np.asarray([[20.0, 10, 40], [70.0, 20, 100]])
"""Nats, tokens and bytes of two texts."""


def test_perplexity_and_bits_per_byte_are_of_all_texts_together() -> None:
    perplexity, bits = likelihood_figures("perplexity", "bits_per_byte")
    assert perplexity.score(TEXTS) == pytest.approx(math.exp(90 / 30)) and perplexity.lower
    assert bits.score(TEXTS) == pytest.approx(90 / math.log(2) / 140) and bits.sample == perplexity.sample


def test_a_stopped_call_does_not_move_the_middle_half() -> None:
    calls = np.asarray([[3.0], [1], [2], [4], [2], [900], [3], [2]])
    assert middle_mean(calls) == pytest.approx((2 + 2 + 3 + 3) / 4)
    assert middle_mean(calls[:1]) == 3.0 and row_mean(np.asarray([[7.0]])) == 7.0


def layered(*scores: float) -> np.ndarray:
    """A sample [2, L, 1] whose layers have these scores."""
    return np.stack([np.asarray(scores)[:, None]] * 2)


@pytest.mark.parametrize(
    ("scores", "layer", "best"),
    [
        ((0.5, 0.5, 0.9), 2.0, 0.9),  # everything is gained at the second
        ((0.5, 0.7, 0.6, 0.9), (1 * 0.2 + 3 * 0.2) / 0.4, 0.9),  # the third adds nothing to the second
        ((0.9, 0.5), 0.0, 0.9),
    ],
)
def test_the_expected_layer_is_where_the_score_is_gained(scores: tuple[float, ...], layer: float, best: float) -> None:
    assert expected_layer(row_mean)(layered(*scores)) == pytest.approx(layer)
    assert best_layer_score(row_mean)(layered(*scores)) == pytest.approx(best)


def declared() -> list[RecordedFigure]:
    """The figures of every judge for texts with one label."""
    family = TaskFamily.default()
    discover(Evaluation.__module__)
    discover(Probe.__module__)
    evaluations = [figure for one in Evaluation.members.values() for figure in one.figures(family)]  # type: ignore
    return [*evaluations, *(figure for one in Probe.members.values() for figure in one().figures())]  # type: ignore


def test_a_figure_has_one_name_and_one_direction_whichever_judge_records_it() -> None:
    directions: dict[str, set[tuple[bool, str, bool]]] = {}
    for figure in declared():
        directions.setdefault(figure.name, set()).add((figure.lower, figure.unit, figure.exact))
        assert "/" not in figure.sample
    assert all(len(one) == 1 for one in directions.values())
    assert {"accuracy", "perplexity", "bytes", "parameters", "latency_ms", "linear/layer"} <= set(directions)


def test_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = {key_of("answers", "regime/task", seed): np.full((3, 2), float(seed)) for seed in (10, 2)}
    write_samples(rows, tmp_path / SAMPLES)
    read = read_samples(tmp_path)
    assert [one[0, 0] for one in read["answers", "regime/task"]] == [2.0, 10.0], "seeds ascend as numbers"
    write_samples({}, tmp_path / "none")
    assert not (tmp_path / "none").exists()
