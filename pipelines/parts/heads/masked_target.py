"""Generation by a network for masked tokens: source and target share a row, and each mask of the target is read from
the source and from the left (Dong et al. 2019, UniLM, §2.3 and §2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from pipelines.errors import RecipeError
from pipelines.parts.heads import Batch
from pipelines.parts.heads.masked_lm import MaskedLMHead, backbone_outputs
from pipelines.parts.heads.text_to_text import TextToTextHead, TextToTextItems, end_of
from pipelines.task_families.encoding import IGNORED, FieldArrays, attention_masks, pad_rows
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Row, Task
    from pipelines.task_families.encoding import EncodedExamples

TARGET_STARTS = Field.of_rows("target_starts")
"""int64 [B]: position in its row of the first token of the target, which is masked there as a whole."""


@dataclass
class MaskedTargetItems(TextToTextItems):
    """Sources and, if known, their targets, in rows in which every token of a target is a mask."""

    mask: int
    """Id of the mask token."""
    types: tuple[int, int]
    """Token types of source and target."""

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        if self.targets is None:
            return super().collate(chosen)
        targets = [self.targets[item] for item in chosen]
        sources = [self.sources[item] for item in chosen]
        ids, real, types = self._rows(sources, [len(target) for target in targets])
        return {
            Field.INPUT_IDS: ids,
            Field.ATTENTION_MASK: real,
            Field.TOKEN_TYPE_IDS: types,
            Field.VISIBLE: visible_to(types == self.types[0], real == 1),
            Field.TARGET_IDS: pad_rows(targets, IGNORED),
            TARGET_STARTS: np.asarray([len(source) for source in sources], dtype=np.int64),
        }

    def unwritten(self, chosen: NDArray[np.int64], longest: int) -> tuple[FieldArrays, int]:
        """The rows of `chosen` with `longest` masks after sources that end at one column, and that column."""
        sources = [self.sources[item][::-1] for item in chosen]
        ids, real, types = (one[:, ::-1] for one in self._rows(sources, [0] * len(sources)))
        width, after = ids.shape[1], (len(sources), longest)
        fields = {
            Field.INPUT_IDS: np.concatenate([ids, np.full(after, self.mask)], axis=1),
            Field.TOKEN_TYPE_IDS: np.concatenate([types, np.full(after, self.types[1])], axis=1),
        }
        real = np.concatenate([real, np.ones(after, dtype=np.int64)], axis=1)
        is_source = np.arange(width + longest) < width
        fields[Field.POSITION_IDS] = np.maximum(np.cumsum(real, axis=1) - 1, 0)
        fields[Field.VISIBLE] = visible_to(np.broadcast_to(is_source, real.shape), real == 1)
        return fields, width

    def _rows(
        self, sources: Sequence[NDArray[np.int64]], masks: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Token ids, attention mask and token types [B, L] of `sources` followed by so many `masks`."""
        rows = [
            np.concatenate([source, np.full(number, self.mask)]) for source, number in zip(sources, masks, strict=True)
        ]
        ids = pad_rows(rows, self.pad)
        real = attention_masks(rows, ids.shape[1])
        ends = np.asarray([[len(source)] for source in sources])
        return ids, real, np.where(np.arange(ids.shape[1]) < ends, *self.types) * real


class MaskedTargetHead(TextToTextHead, name="masked_target"):
    """Text to text with an encoder alone: the architecture's own prediction of masked tokens writes an answer.

    A row is the source and the answer with the tokenizer's special tokens of a text pair. Tokens of the source attend
    to the source, those of the answer to the source and to the answer up to themselves, as under the attention pattern
    for sequence to sequence. An answer begins as one mask; what is predicted there takes its position, and the next
    mask follows, until the end token. A source that leaves fewer than `longest` tokens of `length` for its answer is
    truncated at its end. The prediction of masked tokens is a new head, with random weights but for its embeddings.
    """

    paper = "arXiv:1905.03197"
    needs = frozenset(
        {
            *(Field.INPUT_IDS, Field.ATTENTION_MASK, Field.TOKEN_TYPE_IDS, Field.VISIBLE),
            *(Field.TARGET_IDS, TARGET_STARTS),
        }
    )
    labels = frozenset({Field.TARGET_IDS, TARGET_STARTS})
    needs_abilities = frozenset({Ability.BIDIRECTIONAL, Ability.ONE_STACK, Ability.VISIBILITY})
    needs_tokens = frozenset({"mask"})

    types: tuple[int, int] = (0, 1)
    """Token types of source and target, as pre-training had them; smaller than the backbone's number of types."""
    length_penalty: float = Option(1.0, ge=-10, le=10)
    """α: beam search compares texts of n tokens by Σ log p / n^α, as transformers' `generate` does; of no effect with
    one beam."""

    @model_validator(mode="after")
    def _two_types(self) -> Self:
        if min(self.types) < 0 or self.types[0] == self.types[1]:
            raise ValueError("types are two different numbers from 0, that of the source first")
        return self

    @property
    def type_count(self) -> int:
        """Number of token types that the backbone must have."""
        return max(self.types) + 1

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        types = getattr(config, "type_vocab_size", 0)
        if types < self.type_count:
            raise RecipeError(
                f"head {self.name}: source and target have the token types {self.types[0]} and {self.types[1]}, and "
                f"{config.model_type} has {types} types; raise backbone.dims.type_vocab_size, or use bert"
            )
        return MaskedLMHead().build(config, None)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        """TARGET_LOGITS [B, T, V] at the positions of the target, whatever of it is masked."""
        import torch

        from pipelines.parts.heads.masked_steps import predictions

        if Signal.TARGET_LOGITS not in requested:
            return {}
        top = backbone_outputs(network, batch, requested).last_hidden_state
        targets = batch[Field.TARGET_IDS]
        positions = batch[TARGET_STARTS].unsqueeze(1) + torch.arange(targets.shape[1], device=targets.device)
        chosen = top.take_along_dim(positions.clamp(max=top.shape[1] - 1).unsqueeze(-1), 1)
        return {Signal.TARGET_LOGITS: predictions(network, chosen)}

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        """Raises RecipeError where `length` leaves no room for a source, DataError for an answer that does not fit."""
        # the special tokens of one text: those of a pair but for the last, which ends the answer
        room = length - self.longest
        if room <= tokenizer.num_special_tokens_to_add():
            raise RecipeError(
                f"head {self.name}: rows of {length} tokens have no room for a text besides an answer of "
                f"{self.longest} and special tokens; raise budget.length or lower `longest`"
            )
        texts = [task.family.source(row, task.labels) for row in examples]
        encodings = tokenizer(texts, truncation=True, max_length=room, verbose=False)["input_ids"] if texts else []
        sources = [np.asarray(ids, dtype=np.int64) for ids in encodings]
        targets = self._targets(examples, task, tokenizer, end_of(tokenizer)) if answers else None
        pad, mask = int(tokenizer.pad_token_id), int(tokenizer.mask_token_id)
        return MaskedTargetItems(examples, sources, targets, pad, mask, self.types)

    def _generate_for(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        items: NDArray[np.int64],
        batch: Batch,
        tokenizer: PreTrainedTokenizerFast,
    ) -> Tensor:
        import torch

        from pipelines.networks.beam_search import Writing
        from pipelines.parts.heads.masked_steps import MaskedSteps

        assert isinstance(encoded, MaskedTargetItems)
        fields, width = encoded.unwritten(items, self.longest)
        device = batch[Field.INPUT_IDS].device
        rows = {name: torch.from_numpy(np.ascontiguousarray(value)).to(device) for name, value in fields.items()}
        writing = Writing(self.longest, end_of(tokenizer), encoded.pad, self.beams, self.length_penalty)
        return writing.write(MaskedSteps(network, rows, width, len(tokenizer)), len(items), device)


def visible_to(source: NDArray[np.bool_], real: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool [B, L, L]: whether token i attends to token j, where `source` [B, L] are tokens of the source and `real`
    [B, L] those that are not padding (UniLM §2.3, sequence-to-sequence LM)."""
    length = source.shape[1]
    target = real & ~source
    earlier = target[:, :, None] & np.tri(length, dtype=np.bool_)
    result: NDArray[np.bool_] = ((source & real)[:, None, :] | earlier) & real[:, None, :]
    # a softmax over no token at all would be undefined: padding attends to itself
    result[:, np.arange(length), np.arange(length)] = True
    return result
