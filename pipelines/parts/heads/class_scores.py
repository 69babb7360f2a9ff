"""Base class of heads that score the classes of an example, by a network of their own above the backbone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.parts.heads import Batch, Head, Signals, backbone_inputs
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.parts.heads.pooled_text import highest
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Task
    from pipelines.task_families.encoding import EncodedExamples


class ClassScoresHead(Head):
    """Scores of the classes of an example, whose answer is the class with the highest."""

    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    provides = LAYERS | {Signal.LOGITS}
    needs_abilities = frozenset({Ability.ONE_STACK})
    needs_ability_for: ClassVar[Mapping[Signal, Ability]] = NEED_ABILITIES
    labels = frozenset({Field.LABELS})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.LOGITS})

    def _name_classes(self, config: PretrainedConfig, task: Task | None) -> None:
        """Let a network of `config` have an output for each class of `task`; none without a task."""
        labels = task.labels if task else ()
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: index for index, label in enumerate(labels)}

    def _read(
        self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal], **arguments: Any
    ) -> tuple[Any, dict[Signal, Any]]:
        """The outputs of `network`, which has further `arguments`, and the signals of classes and layers."""
        outputs = network(**backbone_inputs(batch, network), **arguments, output_hidden_states=bool(LAYERS & requested))
        return outputs, {Signal.LOGITS: outputs.logits, **layer_signals(network, outputs, requested)}

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        return [task.labels[index] for index in highest(encoded, outputs)]
