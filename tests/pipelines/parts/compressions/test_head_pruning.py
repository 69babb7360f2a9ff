"""Which heads may be removed, and of which networks."""

from __future__ import annotations

import pytest
from transformers import PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.parts.compressions.head_pruning import HeadPruning, attention_heads
from tests.pipelines.parts.compressions.test_select_layers import body
from tests.reference.test_head_importance import Examples, classifier, examples


@pytest.mark.parametrize("share", [0.01, 0.25, 0.5, 0.9, 1.0])
def test_the_share_of_all_heads_is_kept_and_one_in_each_layer(share: float, tokenizer: PreTrainedTokenizerFast) -> None:
    network = classifier("bert", tokenizer)
    result, change = HeadPruning(share=share).shrink(network, examples())
    counts = [one.count for one in attention_heads(result)]
    assert sum(counts) == max(2, round(8 * share)) and min(counts) >= 1
    assert sum(len(gone) for gone in change.values()) == 8 - sum(counts)


def test_random_heads_are_drawn_by_the_seed_without_data(tokenizer: PreTrainedTokenizerFast) -> None:
    part = HeadPruning(order="random")
    assert not part.needs_calibration and part.draws
    network = classifier("bert", tokenizer)
    first, again, other = (part.choose(network, Examples([], seed)) for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize("architecture", ["t5", "xlnet"])
def test_an_attention_with_other_values_for_each_head_is_refused(
    architecture: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    with pytest.raises(RecipeError, match=f"heads cannot be removed from the backbone {architecture}; .*bert"):
        HeadPruning().shrink(body(architecture, tokenizer), examples())
