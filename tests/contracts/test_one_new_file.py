"""A new objective or architecture is one new file: a recipe names it, a stage trains on it, nothing else changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from tests.contracts.added_parts import PREPARE, outcome_with
from tests.pipelines.training.small_recipe import GENERAL, RECIPE
from tests.steps import ROOT, library_of

FOCAL = '''\
"""The masked tokens, those that are hard to tell above all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class Focal(Objective, name="focal_masked_lm"):
    """Cross-entropy of the masked tokens, each times (1 − p)^γ of its own probability p (Lin et al. 2017, eq. 4)."""

    paper = "arXiv:1708.02002"
    needs_fields = frozenset({Field.MASKED_LABELS})
    needs_signals = frozenset({Signal.MASKED_LOGITS})

    gamma: float = 2.0
    """Exponent; 0 is plain cross-entropy."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        wanted = step.batch[Field.MASKED_LABELS][:, None]
        likely = step.signals[Signal.MASKED_LOGITS].log_softmax(-1).gather(1, wanted)
        return {"focal": -((1 - likely.exp()) ** self.gamma * likely).mean()}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"focal": len(batch[Field.MASKED_LABELS])}
'''


TRAIN = (
    PREPARE
    + """
from pipelines.models.opening import open_lines
step = plan_of(library_of(folder, small=(folder / "small.yaml").read_text()), "small", sources, tiny=True).steps[0]
run(job_of(step, {}, tables, folder / "out"))
open_lines(folder / "out", "cpu")
print(json.dumps(list(read_metrics(folder / "out" / METRICS))))
"""
)
WITH_FOCAL = RECIPE.replace("[masked_lm, contrastive]", "[{name: focal_masked_lm, gamma: 1.5}, contrastive]")


DISTILBERT = '''\
"""DistilBERT (Sanh et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pipelines.parts.architectures import Architecture, AttentionNames, LayerNames
from pipelines.vocabulary import Ability


class DistilBert(Architecture, name="distilbert"):
    """An encoder without token types."""

    paper = "arXiv:1910.01108"

    offers = frozenset({Ability.BIDIRECTIONAL, Ability.ONE_STACK, Ability.WITHIN_DOCUMENTS})
    tiny: ClassVar[Mapping[str, int]] = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}
    width = "dim"
    stacks: ClassVar[Mapping[str, LayerNames]] = {
        "transformer.layer": LayerNames(
            "n_layers",
            ("ffn.lin1", "ffn.lin2"),
            AttentionNames("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"),
        )
    }
    positions = "max_position_embeddings"
    embedding_tables = ("embeddings.word_embeddings", "embeddings.position_embeddings")
    embedding_sum = "embeddings.LayerNorm"
    masked_lm = ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector")
    normalisation = ("LayerNorm", "sa_layer_norm", "output_layer_norm")
'''
WITH_DISTILBERT = GENERAL.replace(
    "dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}",
    "architecture: distilbert",
)


def trained_with(
    folder: Path, files: Mapping[str, str], recipe: str, tables: dict[str, Path]
) -> list[dict[str, float]]:
    """The metrics of the first stage of `recipe`, trained in a copy of the project with more files below `pipelines`,
    path → source."""
    lines: list[dict[str, float]] = outcome_with(folder, files, recipe, tables, TRAIN)
    return lines


def terms_of(folder: Path, file: str, source: str, recipe: str, term: str, tables: dict[str, Path]) -> list[float]:
    """The values of a loss term in the first stage of `recipe`, with one more file of a part."""
    lines = trained_with(folder, {f"parts/{file}": source}, recipe, tables)
    return [line[term] for line in lines if term in line]


def test_a_stage_trains_on_an_objective_that_is_one_file(tmp_path: Path, tables: dict[str, Path]) -> None:
    terms = terms_of(tmp_path, "objectives/focal_masked_lm.py", FOCAL, WITH_FOCAL, "train/focal", tables)
    # a token of 512 is told with the probability 1 / 512 at first: −log(1 / 512) = 6.2, and the factor is nearly one
    assert terms and all(5 < term < 7.5 for term in terms)


def test_a_stage_trains_an_architecture_that_is_one_file(tmp_path: Path, tables: dict[str, Path]) -> None:
    terms = terms_of(tmp_path, "architectures/distilbert.py", DISTILBERT, WITH_DISTILBERT, "train/masked_lm", tables)
    assert terms and all(5 < term < 7.5 for term in terms)


def test_nothing_but_its_file_names_an_architecture() -> None:
    names = {one.name for one in Architecture.all()}
    entries = {
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value!r}"
        for room in ("parts", "training", "models", "serving", "judging", "networks", "recipe")
        for path in (ROOT / "pipelines" / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in names
        if path.parent.name != "architectures" and (room, path.stem) != ("networks", node.value)  # its own network
    }
    assert not entries, (
        "an architecture says what it can do (`pipelines/parts/architectures`); nobody asks for its name"
    )


def test_without_its_file_an_architecture_is_unknown(tmp_path: Path) -> None:
    unknown = "backbone 'transformer', architecture: no architecture is called 'distilbert'."
    known = "Known: " + ", ".join(one.name for one in Architecture.all())
    with pytest.raises(RecipeError, match=f"{re.escape(unknown)}.* {re.escape(known)}"):
        library_of(tmp_path, small=WITH_DISTILBERT).load("small")


def test_without_the_file_its_name_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no objective is called 'focal_masked_lm'. Did you mean 'masked_lm'?"):
        library_of(tmp_path, small=WITH_FOCAL).load("small")
