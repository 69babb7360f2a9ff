"""Extractive question answering: the span of a context that answers a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field as Option

from pipelines.parts.heads import Batch, Head, Signals, backbone_inputs
from pipelines.parts.heads.context_windows import EncodedContexts, encode_contexts
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.encoding import EncodedExamples


class SpanExtractionHead(Head, name="span_extraction"):
    """The first and the last token of the answer, selected among the tokens of a context that follows its question.

    Token 0 means no answer (Devlin et al. 2018, §4.3). A long context is read in overlapping windows, of which the best
    span counts; a window that does not contain the whole answer is labelled as having none. The answer is a substring
    of the original context.
    """

    paper = "arXiv:1810.04805"
    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, Field.ANSWERABLE})
    provides = LAYERS | {Signal.SPAN_LOGITS}
    needs_ability_for = NEED_ABILITIES
    needs_abilities = frozenset({Ability.BIDIRECTIONAL})
    reads = frozenset({"span_extraction"})
    labels = frozenset({Field.SPAN_LABELS})
    annotates = True
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.SPAN_LOGITS})

    longest_question: int = Option(64, ge=1)
    """Maximum number of tokens of a question, at most half of a row."""
    overlap: float = Option(0.5, ge=0, lt=1)
    """Share of a window's context that is repeated in the next one."""
    longest_answer: int = Option(30, ge=1)
    """Maximum number of tokens of a predicted answer."""
    null_threshold: float | None = 0.0
    """Margin by which the best span must exceed the score of no answer (τ of Devlin et al. 2018, §4.3); null if every
    question has an answer."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        config.id2label, config.label2id = {0: "first", 1: "last"}, {"first": 0, "last": 1}
        return self._network(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        outputs = network(**self._inputs(batch, network), output_hidden_states=bool(LAYERS & requested))
        outside = batch[Field.ANSWERABLE] == 0
        outside[:, 0] = False
        signals: dict[Signal, Any] = {
            Signal.SPAN_LOGITS: outputs.logits.masked_fill(outside.unsqueeze(-1), float("-inf"))
        }
        return signals | layer_signals(network, outputs, requested)

    def _network(self, config: PretrainedConfig) -> PreTrainedModel:
        """A network whose `logits` are the scores of tokens [B, L, 2]."""
        from pipelines.networks.span_extractor import SpanExtractor

        return SpanExtractor(config)

    def _inputs(self, batch: Batch, network: PreTrainedModel) -> dict[str, Any]:
        """What the network reads of a batch."""
        return backbone_inputs(batch, network)

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        return encode_contexts(
            examples,
            tokenizer,
            length,
            longest_question=self.longest_question,
            overlap=self.overlap,
            answers=answers,
            annotations=task.annotations,
        )

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        assert isinstance(encoded, EncodedContexts)
        best, no_answer = np.full(len(encoded), -np.inf), np.full(len(encoded), np.inf)
        spans = np.zeros((len(encoded), 2), dtype=np.int64)
        for chosen, _, signals in outputs:
            scores: Tensor = signals[Signal.SPAN_LOGITS].float()
            no_answer[chosen] = scores[:, 0].sum(-1).tolist()
            values, first, last = best_spans(scores, self.longest_answer)
            best[chosen] = values.tolist()
            spans[chosen, 0], spans[chosen, 1] = first.tolist(), last.tolist()
        answers: list[Answer] = []
        firsts = np.searchsorted(encoded.owners, np.arange(len(encoded.examples) + 1))
        for index, example in enumerate(encoded.examples):
            items = np.arange(firsts[index], firsts[index + 1])
            item = items[best[items].argmax()]
            bound = -np.inf if self.null_threshold is None else no_answer[items].min() + self.null_threshold
            characters = encoded.window(int(item)).characters[spans[item]]
            answers.append(example["context"][characters[0, 0] : characters[1, 1]] if best[item] > bound else "")
        return answers


def best_spans(scores: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best span of at most `longest` tokens, without token 0, in `scores` [B, L, 2]: the sum of its first and last
    scores [B], −inf if there is none, and its first and last tokens int64 [B]."""
    import torch

    starts, ends = scores[:, 1:, 0], scores[:, 1:, 1]
    tokens = starts.shape[1]
    # a column for each width of a span, a row for each first token
    widths = range(min(longest, tokens))
    scores_by_width = [
        torch.nn.functional.pad(starts[:, : tokens - more] + ends[:, more:], (0, more), value=float("-inf"))
        for more in widths
    ]
    values, indices = torch.stack(scores_by_width, dim=2).flatten(1).max(dim=1)
    first = indices // len(widths)
    return values, first + 1, first + 1 + indices % len(widths)
