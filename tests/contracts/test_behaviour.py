"""What the members of each family promise when they run: on real tokens, real networks, any shape."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.backbones import Backbone
from pipelines.components import Component
from pipelines.compressions import Compression
from pipelines.corruptions import Arrays, Corruption, TokenIds
from pipelines.heads import Head
from pipelines.objectives import Objective, TrainingStep
from pipelines.strategies import Strategy
from pipelines.tokenizers import Tokenizer
from pipelines.opening import open_tokenizer
from pipelines.vocabulary import Field, Signal
from tests.contracts.families import build, members
from tests.small_corpus import documents

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

LABELS = ("email", "unittest", "xml")


def each(package: str) -> pytest.MarkDecorator:
    """A test for each member of a family, tiny where the family has a tiny form."""
    values = [build(member) for member in members(package).values()]
    return pytest.mark.parametrize("part", [getattr(v, "tiny", lambda v=v: v)() for v in values], ids=members(package))


@cache
def small_tokenizer() -> PreTrainedTokenizerFast:
    from pipelines.tokenizers.wordpiece import WordPiece

    return WordPiece(vocab_size=300).train(documents("json"))


@cache
def stream() -> np.ndarray:
    ids = small_tokenizer().backend_tokenizer.encode_batch(documents("logging"), add_special_tokens=False)
    return np.concatenate([[*encoding.ids, small_tokenizer().sep_token_id] for encoding in ids]).astype(np.int64)


def plain_batch(rows: int, length: int, begin: int) -> Arrays:
    """Rows of real tokens between [CLS] and [SEP], as plain text is batched."""
    tokenizer, inner = small_tokenizer(), length - 2
    ids = np.empty((rows, length), dtype=np.int64)
    ids[:, 0], ids[:, -1] = tokenizer.cls_token_id, tokenizer.sep_token_id
    ids[:, 1:-1] = np.take(stream(), np.arange(begin, begin + rows * inner), mode="wrap").reshape(rows, inner)
    documents_of = np.cumsum(ids == tokenizer.sep_token_id, axis=1)
    return {Field.INPUT_IDS: ids, Field.ORIGINAL_IDS: ids.copy(), Field.DOCUMENTS: documents_of}


def token_ids() -> TokenIds:
    tokenizer = small_tokenizer()
    return TokenIds(len(tokenizer), tokenizer.mask_token_id, tuple(sorted(tokenizer.all_special_ids)))


@each("tokenizers")
def test_a_tokenizer_is_deterministic_and_survives_saving(part: Tokenizer, tmp_path: Path) -> None:
    texts = documents("argparse")
    first, second = part.train(iter(texts)), part.train(iter(texts))
    assert first.backend_tokenizer.to_str() == second.backend_tokenizer.to_str()
    first.save_pretrained(tmp_path)
    opened = open_tokenizer(tmp_path)
    assert opened(texts[:20])["input_ids"] == first(texts[:20])["input_ids"]
    assert len(first) <= getattr(part, "vocab_size", len(first))


def network_of(head: Head, labels: tuple[str, ...] = LABELS) -> PreTrainedModel:
    torch.manual_seed(0)
    backbone = build(members("backbones")["transformer"])
    assert isinstance(backbone, Backbone)
    config = backbone.tiny().config(small_tokenizer(), 64)
    config._attn_implementation = "eager"
    return head.build(config, labels).eval()


def full_batch(seed: int = 0) -> dict[Field, torch.Tensor]:
    """Every field of the vocabulary, from every corruption."""
    arrays = plain_batch(6, 24, 100 * seed)
    for member in members("corruptions").values():
        corruption = build(member)
        assert isinstance(corruption, Corruption)
        arrays = corruption.apply(arrays, token_ids(), np.random.default_rng(seed))
    arrays[Field.ATTENTION_MASK] = np.ones_like(arrays[Field.INPUT_IDS])
    arrays[Field.LABELS] = np.arange(6) % len(LABELS)
    # passages that span both halves are rare at this size: let most rows have their partner
    arrays[Field.PARTNER] = np.roll(np.arange(6), 3)
    return {name: torch.from_numpy(value) for name, value in arrays.items()}


@each("backbones")
def test_a_backbone_describes_a_body_for_its_tokenizer(part: Backbone) -> None:
    config = part.config(small_tokenizer(), 64)
    assert config.vocab_size >= len(small_tokenizer()) and config.pad_token_id == small_tokenizer().pad_token_id


@each("heads")
@torch.no_grad()
def test_a_head_says_what_it_provides(part: Head) -> None:
    network, batch = network_of(part), full_batch()
    said = part.signals(network, batch, part.provides)
    assert part.provides <= said.keys()
    rows, length = batch[Field.INPUT_IDS].shape
    hidden = network.config.hidden_size
    shapes = {
        Signal.MASKED_LOGITS: (len(batch[Field.MASKED_POSITIONS]), network.config.vocab_size),
        Signal.POOLED: (rows, hidden),
        Signal.LOGITS: (rows, len(LABELS)),
    }
    for signal in part.provides - {Signal.HIDDEN_STATES}:
        assert tuple(said[signal].shape) == shapes[signal], signal
    if Signal.HIDDEN_STATES in part.provides:
        assert [tuple(layer.shape) for layer in said[Signal.HIDDEN_STATES]] == [(rows, length, hidden)] * 3
    assert any(name.startswith(network.base_model_prefix + ".") for name in network.state_dict())


@each("objectives")
def test_an_objective_gives_finite_terms_with_gradient(part: Objective) -> None:
    batch = full_batch()
    heads = [build(member) for member in members("heads").values()]
    head = next(h for h in heads if isinstance(h, Head) and part.needs_signals <= h.provides)
    network, teacher = network_of(head), network_of(head)
    with torch.no_grad():
        for value in teacher.parameters():
            value.add_(torch.randn_like(value) * 0.05)
        taught = head.signals(teacher, batch, part.needs_signals)
    step = TrainingStep(batch, head.signals(network, batch, part.needs_signals), network, lambda _: taught)
    terms = part.loss(step)
    assert terms and all(value.ndim == 0 and torch.isfinite(value) for value in terms.values())
    torch.stack([*terms.values()]).sum().backward()
    gradients = [value.grad for value in network.parameters() if value.grad is not None]
    assert all(torch.isfinite(g).all() for g in gradients) and any(bool(g.abs().sum() > 0) for g in gradients)
    assert part.needs_teacher == bool(part.companions(lambda _: teacher))


@each("strategies")
@pytest.mark.parametrize("head", members("heads"))
def test_a_strategy_covers_each_parameter_once(part: Strategy, head: str) -> None:
    chosen = build(members("heads")[head])
    assert isinstance(chosen, Head)
    network = network_of(chosen)
    groups = part.groups(network, 1e-3, 0.01)
    grouped = [id(value) for group in groups for value in group["params"]]
    assert len(grouped) == len(set(grouped)), "a parameter is in two groups"
    assert set(grouped) == {id(value) for value in network.parameters() if value.requires_grad}
    assert all(group["lr"] > 0 and group["weight_decay"] >= 0 for group in groups)


@each("strategies")
@given(total=st.integers(1, 5000), data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_schedule_stays_between_zero_and_one(part: Strategy, total: int, data: st.DataObject) -> None:
    step = data.draw(st.integers(0, total))
    assert 0 <= part.factor(step, total) <= 1
    assert max(part.factor(at, total) for at in range(min(total, 600))) > 0, "nothing would train"


@each("compressions")
def test_a_compression_overrides_exactly_one_of_its_two_methods(part: Compression) -> None:
    own: type[Component] = type(part)
    assert (own.convert is not Compression.convert) == part.replaces_weights
    assert (own.shrink is not Compression.shrink) != part.replaces_weights
