"""A teacher of another vocabulary teaches over the tokens that both have: by hand, and in a stage."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import nn
from transformers import PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.match_token_logits import MatchTokenLogits
from pipelines.recipe.job import Runtime
from pipelines.training.assembly.shared_tokens import SharedTokens
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from pipelines.vocabulary import Field, Signal
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of
from tests.steps import job_of, library_of, plan_of

RECIPE = recipe_of(
    "mapped",
    "arXiv:1910.01108",
    masked_lm_stage("teacher", tokens=2048, positions=32, batch_tokens=512),
    """\
  student:
    like: teacher
    tokenizer: {name: wordpiece, vocab_size: 400}
    teacher: teacher
    teacher_vocabulary: shared_tokens
    objective: [masked_lm, match_token_logits, match_hidden]
""",
)


def words(*vocabulary: str, **special: str) -> PreTrainedTokenizerFast:
    model = WordLevel({word: index for index, word in enumerate(vocabulary)}, unk_token=special.get("unk_token"))
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(model), **special)


def student() -> PreTrainedTokenizerFast:
    return words("[PAD]", "[UNK]", "[MASK]", "a", "b", "c", pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]")


def teacher() -> PreTrainedTokenizerFast:
    return words("<unk>", "<pad>", "b", "<m>", "a", "d", pad_token="<pad>", unk_token="<unk>", mask_token="<m>")


def test_a_teacher_reads_and_answers_in_the_tokens_of_both() -> None:
    shared = SharedTokens(student(), teacher())
    batch = {
        Field.INPUT_IDS: torch.tensor([[3, 4, 5, 2, 0]]),
        Field.TARGET_IDS: torch.tensor([[4, 1, -100]]),
        Field.MASKED_POSITIONS: torch.tensor([3]),
    }
    read = shared.read(batch)
    # c, which it does not have, is unknown to it; special tokens go by what they are for
    assert read[Field.INPUT_IDS].tolist() == [[4, 2, 0, 3, 1]] and read[Field.TARGET_IDS].tolist() == [[2, 0, -100]]
    assert read[Field.MASKED_POSITIONS] is batch[Field.MASKED_POSITIONS]
    states = torch.ones(1, 2)
    logits = torch.tensor([[0.0, 1.0, 2.0, 3.0, 4.0, 50.0]])  # that of d, which the student does not have, is largest
    output = shared.output({Signal.MASKED_LOGITS: logits, Signal.POOLED: states}, width=8)
    total = sum(math.exp(value) for value in (0.0, 1.0, 2.0, 3.0, 4.0))
    # pad, unknown, mask, a, b; c, and what fills the student's vocabulary up, have probability 0
    expected = [math.exp(value) / total for value in (1.0, 0.0, 3.0, 4.0, 2.0)] + [0.0] * 3
    torch.testing.assert_close(output[Signal.MASKED_LOGITS].exp(), torch.tensor([expected]))
    assert output[Signal.POOLED] is states


def test_distributions_are_compared_over_the_tokens_of_both() -> None:
    said, scores = torch.tensor([[0.5, 2.0, -torch.inf]]), torch.tensor([[1.0, 0.0, 9.0]], requires_grad=True)
    step = TrainingStep(
        {Field.MASKED_LABELS: torch.tensor([1])},
        {Signal.MASKED_LOGITS: scores},
        nn.Identity(),  # type: ignore[arg-type]
        lambda *_: {Signal.MASKED_LOGITS: said},
        frozenset({Signal.MASKED_LOGITS}),
    )
    loss = MatchTokenLogits(temperature=2.0).loss(step)["match_token_logits"]
    target = 1 / (1 + math.exp((2.0 - 0.5) / 2)), 1 / (1 + math.exp((0.5 - 2.0) / 2))
    own = 1 / (1 + math.exp((0.0 - 1.0) / 2)), 1 / (1 + math.exp((1.0 - 0.0) / 2))
    assert float(loss.detach()) == pytest.approx(
        -4 * sum(p * math.log(q) for p, q in zip(target, own, strict=True)), rel=1e-6
    )
    loss.backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None and scores.grad[0, 2] == 0, "a token that the teacher lacks is not compared"
    assert scores.grad.isfinite().all() and scores.grad.abs().sum() > 0


def test_what_cannot_be_mapped_is_refused() -> None:
    with pytest.raises(RecipeError, match="none of the student's tokens besides special ones"):
        SharedTokens(student(), words("<unk>", "x", unk_token="<unk>"))
    with pytest.raises(RecipeError, match="no unknown token to read in place of"):
        SharedTokens(student(), words("a", "x"))


def test_a_stage_learns_from_a_teacher_of_other_tokens(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path
) -> None:
    plan = plan_of(library_of(tmp_path, mapped=RECIPE), "mapped", sources)
    folders = {step.fingerprint: tmp_path / step.name for step in plan.steps}
    for step in plan.steps:
        run(job_of(step, folders, tables, tmp_path / step.name, Runtime(log_every=1)))
    lines = [line for line in read_metrics(tmp_path / "student" / METRICS) if "train/match_token_logits" in line]
    assert len(lines) == 4 and all(math.isfinite(line["train/match_token_logits"]) for line in lines)
    assert all(math.isfinite(line["train/match_hidden"]) for line in lines)
    unmapped = RECIPE.replace("    teacher_vocabulary: shared_tokens\n", "")
    with pytest.raises(RecipeError, match="or set teacher_vocabulary: shared_tokens"):
        library_of(tmp_path, mapped=unmapped).load("mapped")
