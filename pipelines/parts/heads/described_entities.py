"""Facts about entities that are read by their descriptions (Wang et al. 2019, KEPLER §3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.heads import Batch, Head, Signals, backbone_inputs
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.parts.heads.pooled_text import highest
from pipelines.parts.heads.row_groups import RowGroups
from pipelines.parts.heads.token_rows import column, refuse_empty, token_rows
from pipelines.task_families.excerpt import number_of
from pipelines.task_families.tokenized import RowTexts
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.encoding import EncodedExamples

FACT_ROWS = Field.of_rows("fact_rows")
"""int64 [B, 2 + K]: 1 for the row of the head, of the relation and of each candidate of the tail, 0 for padding up to
the fact with the most candidates."""
HEAD, RELATION, TAILS = 0, 1, 2
"""Number of the row of a fact's head, of its relation, and of its first candidate."""


class DescribedEntitiesHead(Head, name="described_entities"):
    """Scores −‖h + r − t‖₁ of facts (h, r, t), each the vector of a text that describes it.

    A fact is an example of multiple choice: its context describes the head, its question the relation (as in
    KEPLER-Rel, §3.2), its choices the correct tail and other entities in its place. No text is read together with
    another, so that an entity has one vector in all facts; its description alone gives it one, also where training had
    no fact about it. Rows of a fact are adjacent; each may have `length` tokens.
    """

    paper = "arXiv:1911.06136"
    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, FACT_ROWS})
    provides = LAYERS | {Signal.LOGITS, Signal.POOLED}
    needs_abilities = frozenset({Ability.ONE_STACK, Ability.BIDIRECTIONAL})
    needs_ability_for = NEED_ABILITIES
    reads = frozenset({"multiple_choice"})
    labels = frozenset({Field.LABELS})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.LOGITS})
    annotates = True

    pooling: Literal["cls", "mean"] = "cls"
    """Vector of a description: the top state of its first token, as in the paper, or the mean of its states, which
    learns from fewer facts."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.entity_encoder import EntityEncoder

        config.entity_pooling = self.pooling
        return EntityEncoder(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        from pipelines.networks.entity_encoder import distances

        outputs = network(**backbone_inputs(batch, network), output_hidden_states=bool(LAYERS & requested))
        exists, vectors = batch[FACT_ROWS], outputs.entities
        facts = vectors.view(*exists.shape, vectors.shape[-1])
        scores = -distances(facts[:, HEAD], facts[:, RELATION], facts[:, TAILS:])
        logits = scores.masked_fill(exists[:, TAILS:] == 0, float("-inf"))
        return {Signal.LOGITS: logits, Signal.POOLED: vectors, **layer_signals(network, outputs, requested)}

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        texts: list[str] = []
        columns: list[tuple[str, ...]] = []
        counts = np.zeros(len(examples), dtype=np.int64)
        for index, (example, choices) in enumerate(zip(examples, column(examples, "choices"), strict=True)):
            described = {name: (example.get(name) or "").strip() for name in ("context", "question")}
            _check_fact(described, choices, number_of(examples, index))
            texts += [*described.values(), *choices]
            columns += [*((name,) for name in described), *[("choices",)] * len(choices)]
            counts[index] = TAILS + len(choices)
        numbers = np.repeat(np.arange(len(examples)), counts).tolist()
        rows = token_rows(
            texts, tokenizer, length, sources=RowTexts.of(task.annotations, examples, numbers, texts, columns)
        )
        refuse_empty(rows, examples, numbers)
        return RowGroups(examples, rows, counts, FACT_ROWS, _answers(examples) if answers else None)

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        return [int(index) for index in highest(encoded, outputs)]


def _check_fact(described: dict[str, str], choices: Sequence[str], number: int) -> None:
    """Raise DataError, naming the example, where a fact has no head, no relation, or nothing to choose from."""
    empty = [name for name, text in described.items() if not text]
    if empty:
        raise DataError(
            f"example {number}: its column {empty[0]!r} is empty, and a fact needs the description of its head, in "
            "'context', and of its relation, in 'question'"
        )
    if len(choices) < 2:
        raise DataError(f"example {number}: its column 'choices' holds {len(choices)}, expected two or more")


def _answers(examples: Sequence[Row]) -> NDArray[np.int64]:
    answers = column(examples, "answer")
    for index, (answer, example) in enumerate(zip(answers, examples, strict=True)):
        if not 0 <= answer < len(example["choices"]):
            raise DataError(
                f"example {number_of(examples, index)}: its answer {answer!r} is not the index of one of its "
                f"{len(example['choices'])} choices, from 0"
            )
    return np.asarray(answers, dtype=np.int64)
