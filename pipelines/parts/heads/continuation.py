"""Every task as continuation of a prompt (Radford et al. 2018, §3.3; Radford et al. 2019, §2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.errors import RecipeError
from pipelines.parts.heads import Batch, backbone_inputs
from pipelines.parts.heads.text_to_text import TextToTextHead, TextToTextItems, end_of
from pipelines.task_families.encoding import IGNORED, FieldArrays, attention_masks, pad_rows
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Row, Task
    from pipelines.task_families.encoding import EncodedExamples


@dataclass
class ContinuationItems(TextToTextItems):
    """Prompts and, if known, their continuations, in one row."""

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        if self.targets is None:
            return super().collate(chosen)
        targets = [self.targets[item] for item in chosen]
        # the last target token is only predicted, never an input
        rows = [np.concatenate([self.sources[item], target[:-1]]) for item, target in zip(chosen, targets, strict=True)]
        ids = pad_rows(rows, self.pad)
        return {
            Field.INPUT_IDS: ids,
            Field.ATTENTION_MASK: attention_masks(rows, ids.shape[1]),
            Field.TARGET_IDS: pad_rows(targets, IGNORED),
        }


class ContinuationHead(TextToTextHead, name="continuation"):
    """Read an example as a prompt and generate its answer as continuation: text to text with a causal backbone.

    Prompt and answer have the tokenizer's special tokens of a text pair. A prompt that leaves fewer than `longest`
    tokens of `length` for its answer is truncated at its end. The loss is on the answer alone.
    """

    paper = "Radford et al. 2018"
    needs_abilities = frozenset({Ability.CAUSAL, Ability.ONE_STACK})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from transformers import AutoModelForCausalLM

        network: PreTrainedModel = AutoModelForCausalLM.from_config(config)
        if not network.can_generate():
            raise RecipeError(f"head continuation: {config.model_type} does not support generation; use gpt2")
        return network

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        import torch

        if Signal.TARGET_LOGITS not in requested:
            return {}
        top = network.base_model(**backbone_inputs(batch, network), use_cache=False).last_hidden_state
        targets = batch[Field.TARGET_IDS]
        # a row is the prompt and the target without its last token; each target token is predicted one position earlier
        first = batch[Field.ATTENTION_MASK].sum(1) - (targets != IGNORED).sum(1)
        positions = first[:, None] + torch.arange(targets.shape[1], device=targets.device)
        chosen = top.take_along_dim(positions.clamp(max=top.shape[1] - 1).unsqueeze(-1), 1)
        return {Signal.TARGET_LOGITS: network.get_output_embeddings()(chosen)}

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        before, between, end = _frame(tokenizer)
        room = length - self.longest - len(before) - len(between)
        if room < 1:
            raise RecipeError(
                f"head continuation: rows of {length} tokens have no room for a text besides an answer of "
                f"{self.longest} and special tokens; raise budget.length or lower `longest`"
            )
        texts = [task.family.source(row, task.labels) for row in examples]
        encodings = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else []
        sources = [np.asarray([*before, *ids[:room], *between], dtype=np.int64) for ids in encodings]
        targets = self._targets(examples, task, tokenizer, end) if answers else None
        return ContinuationItems(examples, sources, targets, int(tokenizer.pad_token_id))

    def _generate_for(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        items: NDArray[np.int64],
        batch: Batch,
        tokenizer: PreTrainedTokenizerFast,
    ) -> Tensor:
        import torch

        assert isinstance(encoded, ContinuationItems)
        # rows of a batch with answers contain them: generate from the prompts alone, padded on the left
        reversed_prompts = [encoded.sources[item][::-1] for item in items]
        ids = pad_rows(reversed_prompts, encoded.pad)
        mask = attention_masks(reversed_prompts, ids.shape[1])
        device = batch[Field.INPUT_IDS].device
        prompt, real_mask = (torch.from_numpy(value[:, ::-1].copy()).to(device) for value in (ids, mask))
        return self._generate(network, prompt, real_mask, _frame(tokenizer)[2], tokenizer)[:, prompt.shape[1] :]


def _frame(tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int], int]:
    """The special tokens before the first text of a pair and between both, and the one that ends the second."""
    fast = tokenizer.backend_tokenizer
    fast.no_truncation()
    fast.no_padding()
    pair = fast.encode("a", "a")
    first, second = ([at for at, sequence in enumerate(pair.sequence_ids) if sequence == one] for one in (0, 1))
    behind = pair.ids[second[-1] + 1 :]
    return pair.ids[: first[0]], pair.ids[first[-1] + 1 : second[0]], behind[0] if behind else end_of(tokenizer)
