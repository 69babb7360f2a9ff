"""Every strategy in the real loop: what moves after a start, and that an interrupted stage resumes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import Result
from pipelines.models.opening import open_model
from pipelines.models.weights import read_weights
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.plan import Plan
from pipelines.training.loop.module import StageModule
from pipelines.training.ranks.run import run
from tests.pipelines.training.small_recipe import GENERAL
from tests.steps import job_of, library_of, plan_of

STRATEGIES = {
    "full": "{name: full, head_rate: 3}",
    "frozen": "frozen",
    "mixed": "{name: frozen, features: scalar_mix}",
    "last_layer": "last_layer",
    "adapter": "[{name: adapter, size: 4}, discriminative]",
    "projected": "{name: projected_attention, size: 4, heads: 2}",
    "gradual": "[full, discriminative, {name: gradual_unfreezing, every: 0.0005}]",
    "chain": "[chain_thaw, l2_to_start]",
    "recalled": "[recadam, {name: gradual_unfreezing, every: 0.0005}]",
}
BRIEF = GENERAL.replace("tokens: 102400, batch_tokens: 1024", "tokens: 1024, batch_tokens: 512")
STEPS = 10
STAGE = """\
  {name}:
    kind: adapt_domain
    start: general
    corpus: domain
    strategy: {strategy}
    budget: {{tokens: 5120}}
"""


@dataclass
class Stages:
    """One recipe, a stage for each strategy; the general stage was run."""

    plan: Plan
    tables: dict[str, Path]
    folders: dict[str, Path]
    wholes: dict[str, tuple[Path, Result]] = field(default_factory=dict)
    """Stage → where it ran without interruption, and its result."""

    def job(self, stage: str, out: Path) -> Job:
        step = next(step for step in self.plan.steps if step.name == stage)
        return job_of(step, self.folders, self.tables, out, Runtime(checkpoint_every=3))

    def whole(self, stage: str, folder: Path) -> tuple[Path, Result]:
        """The stage without interruption, in `folder` if it has not run before."""
        if stage not in self.wholes:
            self.wholes[stage] = folder, run(self.job(stage, folder))
        return self.wholes[stage]

    @property
    def start(self) -> dict[str, Tensor]:
        (folder,) = self.folders.values()
        return read_weights(folder)


@pytest.fixture(scope="module")
def stages(tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory) -> Stages:
    root = tmp_path_factory.mktemp("strategies")
    text = BRIEF + "".join(STAGE.format(name=name, strategy=strategy) for name, strategy in STRATEGIES.items())
    made = Stages(plan_of(library_of(root, small=text), "small", sources), tables, {})
    run(made.job("general", root / "general"))
    made.folders[next(step.fingerprint for step in made.plan.steps if step.name == "general")] = root / "general"
    return made


MOVES: dict[str, set[str]] = {
    "full": {"embeddings", "layer.0", "layer.1", "head"},
    "frozen": {"head"},
    "mixed": {"head", "scalar_mix"},
    "last_layer": {"layer.1", "head"},
    "adapter": {"adapter", "LayerNorm", "head"},
    "projected": {"embeddings", "layer.0", "layer.1", "head", "projected_attention"},
    "gradual": {"embeddings", "layer.0", "layer.1", "head"},
    "chain": {"embeddings", "layer.0", "layer.1", "head"},
    "recalled": {"embeddings", "layer.0", "layer.1", "head"},
}
PLACES = {
    "adapter": ".adapter.",
    "scalar_mix": "scalar_mix.",
    "projected_attention": "projected_attention.",
    "embeddings": "bert.embeddings.",
    "layer.0": ".layer.0.",
    "layer.1": ".layer.1.",
    "head": "cls.",
}


def places(names: set[str], first: str = "") -> set[str]:
    """Where parameters stand; `first` is looked for before the others."""
    known = {**({first: first} if first else {}), **PLACES}
    return {next(place for place, piece in known.items() if piece in name) for name in names}


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_moves_between_a_stage_and_its_start_is_what_the_strategy_says(
    name: str, stages: Stages, tmp_path: Path
) -> None:
    folder, result = stages.whole(name, tmp_path)
    assert result.steps == STEPS
    start, end = stages.start, read_weights(folder)
    moved = {key for key, value in end.items() if key not in start or not torch.equal(value, start[key])}
    assert places(moved, "LayerNorm" if name == "adapter" else "") == MOVES[name]
    opened = open_model(folder, "cpu").network.state_dict()
    assert all(torch.equal(opened[key], value) for key, value in end.items())
    share = result.metrics.get("trained_share", 1.0)
    assert (share < 1) == (name in ("frozen", "mixed", "last_layer", "adapter"))
    if name == "chain":
        assert result.metrics["train/l2_to_start"] > 0


FINE_TUNED = """\
  {name}:
    kind: finetune
    start: {start}
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    strategy: {strategy}
    optimizer: {{lr: 3.0e-3, precision: 32-true}}
    budget: {{epochs: 5, batch_texts: 8, length: 48}}
"""
PASSES = 3
"""Steps in a pass over the labelled texts."""


@pytest.fixture
def steps_seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, str]]:
    """At every step of what the test runs: whether the body drops anything, and the depths that train."""
    seen: list[tuple[bool, str]] = []
    step = StageModule.training_step

    def watched(self: StageModule, batch: Any, index: int) -> Tensor:
        loss = step(self, batch, index)
        trains = {group.depth for group in self._groups for _, parameter in group.parameters if parameter.requires_grad}
        drops = any(module.training for module in self.network.base_model.modules())
        seen.append((drops, "".join(map(str, sorted(trains)))))
        return loss

    monkeypatch.setattr(StageModule, "training_step", watched)
    return seen


def fine_tuned(root: Path, stages: Stages, sources: dict[str, DataSource], **strategies: str) -> Stages:
    """Stages on labels that start one from the other, the first from the general one."""
    text, start = BRIEF, "general"
    for name, strategy in strategies.items():
        text, start = text + FINE_TUNED.format(name=name, start=start, strategy=strategy), name
    root.mkdir()
    plan = plan_of(library_of(root, small=text), "small", sources)
    assert plan.steps[0].fingerprint in stages.folders, "the general stage is the same one"
    return Stages(plan, stages.tables, dict(stages.folders))


@pytest.mark.parametrize(
    ("strategy", "drops", "expected"),
    [
        ("frozen", False, ["3"] * 5),
        ("[full, discriminative, gradual_unfreezing]", True, ["3", "23", "123", "0123", "0123"]),
        ("[chain_thaw, l2_to_start]", True, ["3", "0", "1", "2", "0123"]),
    ],
)
def test_layers_train_by_the_table_and_a_frozen_body_drops_nothing_though_each_pass_is_validated(
    strategy: str,
    drops: bool,
    expected: list[str],
    stages: Stages,
    sources: dict[str, DataSource],
    tmp_path: Path,
    steps_seen: list[tuple[bool, str]],
) -> None:
    result = run(fine_tuned(tmp_path / "recipe", stages, sources, tuned=strategy).job("tuned", tmp_path / "tuned"))
    assert steps_seen == [(drops, depths) for depths in expected for _ in range(PASSES)]
    assert "validation/macro_f1" in result.metrics


def test_a_stage_that_continues_adapters_keeps_them_and_refuses_others(
    stages: Stages, sources: dict[str, DataSource], tmp_path: Path
) -> None:
    given = {"first": "{name: adapter, size: 4}", "second": "full", "third": "{name: adapter, size: 8}"}
    made = fine_tuned(tmp_path / "recipe", stages, sources, **given)
    for step in made.plan.steps[1:3]:
        run(made.job(step.name, tmp_path / step.name))
        made.folders[step.fingerprint] = tmp_path / step.name
    first, second = read_weights(tmp_path / "first"), read_weights(tmp_path / "second")
    adapters = {name for name in first if ".adapter." in name}
    assert len(adapters) == 16 and first.keys() == second.keys()
    assert not any(torch.equal(first[name], second[name]) for name in adapters), "full trains them with the rest"
    open_model(tmp_path / "second", "cpu")
    with pytest.raises(RecipeError, match="already has adapters with other options"):
        run(made.job("third", tmp_path / "third"))


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("name", ["mixed", "adapter", "projected", "chain", "recalled"])
def test_an_interrupted_stage_ends_in_the_same_weights(
    name: str, stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = stages.whole(name, tmp_path / "whole")
    step = StageModule.training_step

    def interrupted(self: StageModule, batch: Any, index: int) -> Tensor:
        if self.global_step == 7:
            raise Interrupted
        return step(self, batch, index)

    with monkeypatch.context() as patched:
        patched.setattr(StageModule, "training_step", interrupted)
        with pytest.raises(Interrupted):
            run(stages.job(name, tmp_path / "resumed"))
    result: Result = run(stages.job(name, tmp_path / "resumed"))
    assert result.resumed_from_step == 6
    whole, resumed = read_weights(folder), read_weights(tmp_path / "resumed")
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(value, resumed[key]) for key, value in whole.items())


def test_strategies_that_cannot_meet_are_refused_at_load(tmp_path: Path) -> None:
    text = BRIEF + STAGE.format(name="both", strategy="[frozen, gradual_unfreezing]")
    with pytest.raises(
        RecipeError, match=r"small.yaml:\d+: stages.both.strategy: gradual_unfreezing decides when each"
    ):
        library_of(tmp_path, small=text).load("small")
