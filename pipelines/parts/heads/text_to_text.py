"""Every task as generation of its answer (Raffel et al. 2019, §2.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt

from pipelines.errors import DataError
from pipelines.parts.heads import Batch, Signals
from pipelines.parts.heads.sequence_to_sequence import SequenceToSequenceHead
from pipelines.task_families.columns import Columns, lengths_of
from pipelines.task_families.encoding import IGNORED, EncodedExamples, FieldArrays, attention_masks, pad_rows
from pipelines.task_families.excerpt import number_of
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task


@dataclass
class TextToTextItems(EncodedExamples):
    """Encoded sources and, if known, their targets."""

    examples: Sequence[Row]
    sources: Sequence[NDArray[np.int64]]
    targets: Sequence[NDArray[np.int64]] | None
    pad: int

    def __post_init__(self) -> None:
        self.lengths = lengths_of(self.sources)
        self.owners = np.arange(len(self.sources), dtype=np.int64)

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        sources = [self.sources[item] for item in chosen]
        ids = pad_rows(sources, self.pad)
        batch: FieldArrays = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: attention_masks(sources, ids.shape[1])}
        if self.targets is not None:
            batch[Field.TARGET_IDS] = pad_rows([self.targets[item] for item in chosen], IGNORED)
        return batch

    def columns(self) -> Columns:
        targets: Columns = {} if self.targets is None else {"targets": self.targets}
        return {"sources": self.sources, **targets}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> Self:
        return replace(self, examples=examples, sources=columns["sources"], targets=columns.get("targets"))


class TextToTextHead(SequenceToSequenceHead, name="text_to_text"):
    """Read an example as one text and generate its answer as another, whatever the task family.

    A source of more than `length` tokens is truncated at its end. If the answers are a closed set, one of more than
    `longest` tokens is an error; otherwise it is truncated, and trained without its end token. Generated text that is
    not a valid answer counts as wrong.
    """

    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, Field.TARGET_IDS})
    reads = frozenset(
        {
            "text_classification",
            "pair_classification",
            "pair_regression",
            "tagging",
            "span_extraction",
            "multiple_choice",
            "text_generation",
        }
    )
    labels = frozenset({Field.TARGET_IDS})

    beams: PositiveInt = 1
    """Number of beams in beam search; 1 is greedy decoding."""
    longest: PositiveInt = 64
    """Maximum number of tokens of an answer, including its end token."""

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        texts = [task.family.source(row, task.labels) for row in examples]
        encodings = tokenizer(texts, truncation=True, max_length=length, verbose=False)["input_ids"] if texts else []
        sources = [np.asarray(ids, dtype=np.int64) for ids in encodings]
        targets = self._targets(examples, task, tokenizer, end_of(tokenizer)) if answers else None
        return TextToTextItems(examples, sources, targets, int(tokenizer.pad_token_id))

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        answers: list[Answer] = [None] * len(encoded.examples)
        for items, batch, _ in outputs:
            generated = self._generate_for(network, encoded, items, batch, tokenizer)
            for item, text in zip(items, tokenizer.batch_decode(generated, skip_special_tokens=True), strict=True):
                owner = encoded.owners[item]
                answers[owner] = task.family.read_answer(text.strip(), encoded.examples[owner], task.labels)
        return answers

    def _generate_for(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        items: NDArray[np.int64],
        batch: Batch,
        tokenizer: PreTrainedTokenizerFast,
    ) -> Tensor:
        """int64 [B, at most `longest` + 1]: the tokens that `network` generates for `items`."""
        return self._generate(
            network, batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK], end_of(tokenizer), tokenizer
        )

    def _generate(
        self, network: PreTrainedModel, ids: Tensor, mask: Tensor, end: int, tokenizer: PreTrainedTokenizerFast
    ) -> Tensor:
        # rows of the vocabulary that only round its size up are not tokens
        unused = list(range(len(tokenizer), network.config.vocab_size))
        generated: Tensor = network.generate(  # type: ignore[operator]  # transformers types it as a module
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=self.longest,
            num_beams=self.beams,
            do_sample=False,
            eos_token_id=end,
            pad_token_id=tokenizer.pad_token_id,
            suppress_tokens=unused or None,
        )
        return generated

    def _targets(
        self, examples: Sequence[Row], task: Task, tokenizer: PreTrainedTokenizerFast, end: int
    ) -> list[NDArray[np.int64]]:
        texts = [task.family.answer_text(row) for row in examples]
        encodings = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else []
        targets = []
        for row, (text, ids) in enumerate(zip(texts, encodings, strict=True)):
            whole = [*ids, end]
            if len(whole) > self.longest and task.labels:
                raise DataError(
                    f"row {number_of(examples, row)}: its answer {text[:60]!r} has {len(whole)} tokens, more than the "
                    f"{self.longest} that {self.name} generates; raise `longest`"
                )
            targets.append(np.asarray(whole[: self.longest], dtype=np.int64))
        return targets


def end_of(tokenizer: PreTrainedTokenizerFast) -> int:
    """Id of the token that ends a generated text."""
    end = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id
    return int(end)
