"""Language-modelling head in two steps: the class of the next word, then the word in its class (Goodman 2001)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import Field as Option

from pipelines.parts.heads import Batch, Head, backbone_inputs
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.networks.class_softmax import ClassSoftmaxLM
    from pipelines.task_families import Task

CLASS_STATES = Signal.of_head("class_states")
"""[B, L, H]: the states from which class and word are predicted."""


class ClassLMHead(Head, name="class_lm"):
    """A causal backbone, a softmax over classes of words, and one over the words of each class.

    Classes are ranges of ids that are about equally probable together: by the counts that the backbone's configuration
    keeps, or else by Zipf's law, as the tokenizer sorts its words by frequency. The default is √V classes.
    """

    paper = "Goodman 2001"
    may_read = frozenset({Field.ATTENTION_MASK, Field.MEMORY})
    provides = frozenset({CLASS_STATES, Signal.NEXT_LOGITS, Signal.MEMORY})
    needs_abilities = frozenset({Ability.CAUSAL, Ability.ONE_STACK})
    needs_ability_for: ClassVar[Mapping[Signal, Ability]] = {Signal.MEMORY: Ability.MEMORY}
    needs_tokens = frozenset({"counts"})

    classes: int | None = Option(None, ge=1, le=1_000_000)
    """Largest number of classes; null: the root of the size of the vocabulary."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.class_softmax import ClassSoftmaxLM, class_starts

        size: int = config.vocab_size
        counts = getattr(config, "token_counts", None) or [1 / (rank + 1) for rank in range(size)]
        return ClassSoftmaxLM(config, class_starts(counts, self.classes or round(size**0.5)))

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        model = cast("ClassSoftmaxLM", network)
        memory = {"memory": batch[Field.MEMORY]} if Field.MEMORY in batch else {}
        outputs = model.states({**backbone_inputs(batch, network), **memory})
        signals: dict[Signal, Any] = {}
        if CLASS_STATES in requested:
            signals[CLASS_STATES] = outputs.last_hidden_state
        if Signal.NEXT_LOGITS in requested:
            signals[Signal.NEXT_LOGITS] = model.log_probs(outputs.last_hidden_state)
        if Signal.MEMORY in requested:
            signals[Signal.MEMORY] = outputs.memory
        return signals
