"""Language-modelling head over a binary tree of words: of a taxonomy, random, or learned from the words' vectors (Morin
& Bengio 2005; Mnih & Hinton 2008)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from pipelines.errors import RecipeError
from pipelines.parts.heads import Batch, Head, backbone_inputs
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.networks.tree_softmax import TreeSoftmaxLM
    from pipelines.task_families import Task

TREE_STATES = Signal.of_head("tree_states")
"""[B, L, H]: the states from which the turns on a word's path are predicted."""


class TreeLMHead(Head, name="tree_lm"):
    """A causal backbone, and a logistic regression at every inner node of a tree whose leaves are the words.

    A learned tree is grown when the stage begins, from the vectors of the words that it starts with: of a stage with a
    random tree, as in §4. Each node parts its words by a mixture of two Gaussians; a word has one leaf, where the
    paper's best trees have several.
    """

    paper = "Mnih & Hinton 2008"
    may_read = frozenset({Field.ATTENTION_MASK, Field.MEMORY})
    provides = frozenset({TREE_STATES, Signal.NEXT_LOGITS, Signal.MEMORY})
    needs_abilities = frozenset({Ability.CAUSAL, Ability.ONE_STACK})
    needs_ability_for: ClassVar[Mapping[Signal, Ability]] = {Signal.MEMORY: Ability.MEMORY}

    tree: Literal["random", "learned"] | None = None
    """`random`: words in a random order, of equal depth; `learned`: words of similar vectors in one branch; None: the
    tree that the backbone has of a taxonomy, or a random one."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        import numpy as np
        import torch

        from pipelines.networks.tree_softmax import TreeSoftmaxLM
        from pipelines.networks.word_trees import WordTree, random_tree

        if config.vocab_size < 2:
            raise RecipeError(
                "head tree_lm: a vocabulary of one word has no tree; give the tokenizer more text, or lower min_count"
            )
        given = getattr(config, "taxonomy_tree", None) if self.tree is None else None
        if given is not None:
            return TreeSoftmaxLM(config, WordTree(*(np.asarray(part, dtype=np.int64) for part in given)))
        return TreeSoftmaxLM(config, random_tree(torch.randperm(config.vocab_size).numpy()))

    def continues(self, other: Head) -> bool:
        return isinstance(other, TreeLMHead) and other.tree == self.tree

    def begin(self, network: PreTrainedModel) -> None:
        from pipelines.networks.word_trees import learned_tree

        if self.tree == "learned":
            model = cast("TreeSoftmaxLM", network)
            vectors = cast("Any", model.base_model).get_input_embeddings().weight
            model.set_tree(learned_tree(vectors.detach().cpu().double().numpy()[: model.config.vocab_size]))

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        model = cast("TreeSoftmaxLM", network)
        memory = {"memory": batch[Field.MEMORY]} if Field.MEMORY in batch else {}
        outputs = model.states({**backbone_inputs(batch, network), **memory})
        signals: dict[Signal, Any] = {}
        if TREE_STATES in requested:
            signals[TREE_STATES] = outputs.last_hidden_state
        if Signal.NEXT_LOGITS in requested:
            signals[Signal.NEXT_LOGITS] = model.log_probs(outputs.last_hidden_state)
        if Signal.MEMORY in requested:
            signals[Signal.MEMORY] = outputs.memory
        return signals
