"""Every task as writing its answer (Raffel et al. 2019, §2.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt

from pipelines.errors import DataError
from pipelines.parts.heads import Batch, Signals
from pipelines.parts.heads.sequence_to_sequence import SequenceToSequenceHead
from pipelines.task_families.encoding import IGNORED, EncodedExamples, FieldArrays, attention_masks, pad_rows
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task


@dataclass
class TextToTextItems(EncodedExamples):
    """Sources and, where they are known, what is to be written of each."""

    examples: Sequence[Row]
    sources: list[NDArray[np.int64]]
    targets: list[NDArray[np.int64]] | None
    pad: int

    def __post_init__(self) -> None:
        self.lengths = np.asarray([len(source) for source in self.sources], dtype=np.int64)
        self.owners = np.arange(len(self.sources), dtype=np.int64)

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        sources = [self.sources[item] for item in chosen]
        ids = pad_rows(sources, self.pad)
        batch: FieldArrays = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: attention_masks(sources, ids.shape[1])}
        if self.targets is not None:
            batch[Field.TARGET_IDS] = pad_rows([self.targets[item] for item in chosen], IGNORED)
        return batch


class TextToTextHead(SequenceToSequenceHead, name="text_to_text"):
    """Reads an example as one text and writes its answer as another, whatever the task family.

    A source of more than `length` tokens is cut at its end. Where the answers are a closed set, one that takes more than
    `longest` tokens is an error; elsewhere it is cut, and then not taught to end. Written text that is no answer counts as a
    wrong one.
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
    """Texts that beam search keeps at each step; 1 writes the likeliest token each time."""
    longest: PositiveInt = 64
    """Tokens of the longest answer, its end included."""

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
        read = tokenizer(texts, truncation=True, max_length=length, verbose=False)["input_ids"] if texts else []
        sources = [np.asarray(ids, dtype=np.int64) for ids in read]
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
            written = self._written(network, encoded, items, batch, tokenizer)
            for item, text in zip(items, tokenizer.batch_decode(written, skip_special_tokens=True), strict=True):
                owner = encoded.owners[item]
                answers[owner] = task.family.read_answer(text.strip(), encoded.examples[owner], task.labels)
        return answers

    def _written(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        items: NDArray[np.int64],
        batch: Batch,
        tokenizer: PreTrainedTokenizerFast,
    ) -> Tensor:
        """int64 [B, at most `longest` + 1]: what `network` writes of `items`."""
        return self._generated(
            network, batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK], end_of(tokenizer), tokenizer
        )

    def _generated(
        self, network: PreTrainedModel, ids: Tensor, mask: Tensor, end: int, tokenizer: PreTrainedTokenizerFast
    ) -> Tensor:
        # rows of the vocabulary that only round its size up say nothing
        nothing = list(range(len(tokenizer), network.config.vocab_size))
        written: Tensor = network.generate(  # type: ignore[operator]  # transformers types it as a module
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=self.longest,
            num_beams=self.beams,
            do_sample=False,
            eos_token_id=end,
            pad_token_id=tokenizer.pad_token_id,
            suppress_tokens=nothing or None,
        )
        return written

    def _targets(
        self, examples: Sequence[Row], task: Task, tokenizer: PreTrainedTokenizerFast, end: int
    ) -> list[NDArray[np.int64]]:
        texts = [task.family.answer_text(row) for row in examples]
        written = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else []
        targets = []
        for row, (text, ids) in enumerate(zip(texts, written, strict=True)):
            whole = [*ids, end]
            if len(whole) > self.longest and task.labels:
                raise DataError(
                    f"row {row}: its answer {text[:60]!r} takes {len(whole)} tokens, and {self.name} writes at most "
                    f"{self.longest}; raise `longest`"
                )
            targets.append(np.asarray(whole[: self.longest], dtype=np.int64))
        return targets


def end_of(tokenizer: PreTrainedTokenizerFast) -> int:
    """The token that ends a written text."""
    end = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id
    return int(end)
