"""Windows of long texts against a loop over single windows, and a sliding window of attention against Longformer's."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import BertConfig, BertModel, LongformerConfig, LongformerModel, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.networks.visibility import with_mask
from pipelines.networks.windowed_classifier import WindowedClassifier
from pipelines.parts.attention.sliding_window import SlidingWindow
from pipelines.parts.heads.hierarchical_classification import HierarchicalClassificationHead
from pipelines.parts.heads.windowed_classification import WindowedClassificationHead
from pipelines.parts.heads.windowed_texts import WINDOWS, WindowedTextHead
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import documents

TASK = Task(TaskFamily.model_validate("text_classification"), ("a", "b", "c"))
SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
HEADS: dict[str, WindowedTextHead] = {
    "mean": WindowedClassificationHead(windows=3),
    "max": WindowedClassificationHead(windows=3, combined="max", pooling="cls"),
    "lstm": HierarchicalClassificationHead(windows=3, overlap=4, size=6),
}


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    return WordPiece(vocab_size=300).train(documents("logging"))


def network_of(head: WindowedTextHead) -> WindowedClassifier:
    torch.manual_seed(0)
    network = head.build(BertConfig(vocab_size=len(tokenizer()), max_position_embeddings=64, **SIZES), TASK)
    for parameter in network.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    assert isinstance(network, WindowedClassifier)
    return network.eval()


@pytest.mark.parametrize("name", HEADS)
@torch.no_grad()
def test_a_batch_of_texts_is_what_a_loop_over_their_windows_gives(name: str) -> None:
    head = HEADS[name]
    network = network_of(head)
    # of one window, of two, and of more than are read
    ids = tokenizer()(documents("logging")[0] * 4, add_special_tokens=False)["input_ids"]
    texts = [tokenizer().decode(ids[begin : begin + size]) for begin, size in ((0, 6), (20, 20), (60, 90))]
    encoded = head.encode([{"text": text, "label": "b"} for text in texts], TASK, tokenizer(), 16)
    batch: Any = {field: torch.from_numpy(value) for field, value in encoded.batch(np.asarray([0, 1, 2])).items()}
    assert batch[WINDOWS].sum(1).tolist() == [1, 2, 3] and batch[Field.LABELS].tolist() == [1, 1, 1]
    logits: Tensor = head.signals(network, batch, frozenset({Signal.LOGITS}))[Signal.LOGITS]
    for text, found in zip(texts, logits, strict=True):
        torch.testing.assert_close(found, looped(head, network, text), rtol=1e-4, atol=1e-5)


def looped(head: WindowedTextHead, network: WindowedClassifier, text: str) -> Tensor:
    """The scores of one text, by slices of its tokens and a network call for each."""
    ids, step = tokenizer()(text, add_special_tokens=False)["input_ids"], 14 - head.overlap
    begins = range(0, max(len(ids) - head.overlap, 1), step)
    vectors = []
    for begin in list(begins)[:3]:
        row = torch.tensor([[tokenizer().cls_token_id, *ids[begin : begin + 14], tokenizer().sep_token_id]])
        states = network.base_model(row).last_hidden_state[0]
        vectors.append(states[0] if head.pooling == "cls" else states.mean(0))
    if network.reader is not None:
        combined = network.reader(torch.stack(vectors)[None])[1][0][0, 0]
    else:
        joined = torch.stack(vectors)
        combined = joined.amax(0) if network.config.windows_combined == "max" else joined.mean(0)
    scores: Tensor = network.classifier(combined)
    return scores


def test_windows_without_room_are_refused() -> None:
    head = WindowedClassificationHead(overlap=14)
    with pytest.raises(RecipeError, match="of 16 tokens have room for 14 of the text, and 14 of them are those"):
        head.encode([{"text": "so", "label": "a"}], TASK, tokenizer(), 16)


@torch.no_grad()
def test_the_sliding_window_is_longformer_s_with_its_global_attention() -> None:
    torch.manual_seed(0)
    length, window = 32, 8
    # Longformer counts positions from padding + 1
    longformer = LongformerModel(
        LongformerConfig(
            vocab_size=50, attention_window=[window] * 2, pad_token_id=0, max_position_embeddings=64, **SIZES
        ),
        add_pooling_layer=False,
    ).eval()
    bert = BertModel(
        BertConfig(vocab_size=50, max_position_embeddings=64, **SIZES, attn_implementation="eager"),
        add_pooling_layer=False,
    ).eval()
    for parameter in longformer.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    weights = longformer.state_dict()
    for name in list(weights):
        # its projections of global attention are those of all others here
        if (side := next((one for one in ("query", "key", "value") if f"self.{one}_global" in name), None)) is not None:
            weights[name] = weights[name.replace(f"{side}_global", side)]
    longformer.load_state_dict(weights)
    bert.load_state_dict({name: value for name, value in weights.items() if "_global" not in name}, strict=False)
    bert.embeddings.token_type_embeddings.weight.zero_()
    bert.embeddings.token_type_embeddings.weight[0] = weights["embeddings.token_type_embeddings.weight"][0]
    ids = torch.randint(1, 50, (2, length))
    everywhere = torch.zeros_like(ids)
    everywhere[:, 0] = 1
    expected = longformer(ids, torch.ones_like(ids), global_attention_mask=everywhere).last_hidden_state
    fields = SlidingWindow(window=window).apply({Field.INPUT_IDS: ids.numpy()})
    inputs = {"input_ids": ids, "position_ids": torch.arange(length)[None] + 1}
    visible = torch.from_numpy(fields[Field.VISIBLE])
    found = bert(**with_mask({**inputs, "visible": visible}, bert.config)).last_hidden_state
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    full = bert(**inputs).last_hidden_state
    assert (full - expected).abs().max() > 0.01, "and not that of all tokens"
