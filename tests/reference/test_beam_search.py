"""Beam search with a length penalty: ours against transformers' `generate`, and what its own heads pass to it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import BertConfig, EncoderDecoderConfig, EncoderDecoderModel, GPT2Config, T5Config
from transformers import PreTrainedTokenizerFast as Tokenizer

from pipelines.networks.beam_search import Writing
from pipelines.networks.copied_decoder import CopiedDecoder
from pipelines.networks.copied_steps import CopiedSteps
from pipelines.parts.heads.continuation_beams import ContinuationBeamsHead
from pipelines.parts.heads.copied_decoder_beams import CopiedDecoderBeamsHead
from pipelines.parts.heads.text_to_text import TextToTextHead, end_of
from pipelines.parts.heads.text_to_text_beams import TextToTextBeamsHead
from pipelines.task_families import Task, TaskFamily
from tests.small_corpus import LABELS, documents

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
SIZE, END, PAD, BEGIN, LONGEST = 64, 9, 1, 2, 7
TASK = Task(TaskFamily.model_validate("text_classification"), LABELS)
ROWS = [{"text": documents(label)[0], "label": label} for label in LABELS]


def networks(seed: int, end: float) -> tuple[CopiedDecoder, EncoderDecoderModel]:
    """A network of ours and transformers' with the same weights; `end` is added to the score of the end token."""
    torch.manual_seed(seed)
    given: dict[str, Any] = {"vocab_size": SIZE, "initializer_range": 0.4, "layer_norm_eps": 1e-5, **SIZES}
    ours = CopiedDecoder(BertConfig(**given))
    ours.eval()  # type: ignore[no-untyped-call]  # transformers types modules loosely
    ours.bias.data.normal_(std=0.3)
    ours.bias.data[END] += end
    for name, weight in ours.decoder.named_parameters():
        if "crossattention.output.dense" in name:
            weight.data.mul_(0.15)  # else the source alone decides, and a text repeats one token
    of_decoder = BertConfig(**given, is_decoder=True, add_cross_attention=True)
    theirs = EncoderDecoderModel(EncoderDecoderConfig.from_encoder_decoder_configs(ours.config, of_decoder)).eval()
    theirs.encoder.load_state_dict(ours.base_model.state_dict(), strict=False)
    theirs.decoder.bert.load_state_dict(ours.decoder.state_dict())
    predicted = theirs.decoder.cls.predictions
    predicted.transform.dense.load_state_dict(ours.transform.state_dict())
    predicted.transform.LayerNorm.load_state_dict(ours.transform_norm.state_dict())
    predicted.bias.data = predicted.decoder.bias.data = ours.bias.data
    return ours, theirs


def sources() -> tuple[Tensor, Tensor]:
    random = np.random.default_rng(0)
    ids = torch.from_numpy(random.integers(10, SIZE, size=(6, 8)))
    ids[:, 0] = BEGIN
    mask = torch.ones_like(ids)
    mask[1, 5:] = mask[4, 3:] = 0
    return ids, mask


@pytest.mark.parametrize("penalty", [-1.0, 0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("beams", [1, 2, 5])
@torch.no_grad()
def test_texts_are_those_of_generate(beams: int, penalty: float) -> None:
    (ids, mask), lengths = sources(), set[int]()
    for seed, end in ((0, 6.0), (1, 4.0), (3, 4.0), (3, 6.0)):
        ours, theirs = networks(seed, end)
        expected = theirs.generate(  # type: ignore[misc]  # transformers types it for a protocol
            input_ids=ids,
            attention_mask=mask,
            num_beams=beams,
            length_penalty=penalty,
            max_new_tokens=LONGEST,
            do_sample=False,
            decoder_start_token_id=BEGIN,
            eos_token_id=END,
            pad_token_id=PAD,
        )[:, 1:]
        writing = Writing(LONGEST, END, PAD, beams, penalty)
        texts = writing.write(CopiedSteps(ours, ids, mask, SIZE), len(ids), ids.device)
        width = expected.shape[1]
        assert torch.equal(texts[:, :width], expected) and bool((texts[:, width:] == PAD).all())
        lengths |= {*(texts != PAD).sum(1).tolist()}
    assert len(lengths) > 1, "texts of one length have nothing to compare"


@torch.no_grad()
def test_a_larger_penalty_writes_longer_texts() -> None:
    ids, mask = sources()
    ours, _ = networks(3, 6.0)
    lengths = [
        int((Writing(LONGEST, END, PAD, 4, one).write(CopiedSteps(ours, ids, mask, SIZE), 6, ids.device) != PAD).sum())
        for one in (-2.0, 1.0, 4.0)
    ]
    assert lengths[0] < lengths[1] < lengths[2]


@torch.no_grad()
def test_the_head_writes_its_beams_and_only_tokens_of_the_tokenizer(tokenizer: Tokenizer) -> None:
    torch.manual_seed(0)
    given: dict[str, Any] = {
        "vocab_size": 576,
        "initializer_range": 0.4,
        "pad_token_id": tokenizer.pad_token_id,
        **SIZES,
    }
    head = CopiedDecoderBeamsHead(beams=3, length_penalty=2.0, longest=5)
    network = head.build(BertConfig(**given), TASK).eval()
    assert isinstance(network, CopiedDecoder)
    network.bias.data[len(tokenizer) :] = 9.0  # rows of the vocabulary that are no token
    batch = {name: torch.from_numpy(value) for name, value in _items(head, tokenizer).collate(np.arange(3)).items()}
    texts = head._generate_for(network, _items(head, tokenizer), np.arange(3), batch, tokenizer)
    assert int(texts.max()) < len(tokenizer)
    ids, mask = (batch[name] for name in ("input_ids", "attention_mask"))
    writing = Writing(5, end_of(tokenizer), int(tokenizer.pad_token_id), 3, 2.0)
    assert torch.equal(texts, writing.write(CopiedSteps(network, ids, mask, len(tokenizer)), 3, ids.device))


def _items(head: TextToTextHead, tokenizer: Tokenizer) -> Any:
    return head.encode(ROWS, TASK, tokenizer, 48, answers=False)


@pytest.mark.parametrize("kind", [TextToTextBeamsHead, ContinuationBeamsHead])
@torch.no_grad()
def test_heads_of_transformers_pass_beams_and_penalty_to_generate(
    kind: type[TextToTextBeamsHead | ContinuationBeamsHead], tokenizer: Tokenizer
) -> None:
    """The penalty decides between a text of one token and one of two, as the sums of their log-likelihoods say."""
    end, pad = end_of(tokenizer), int(tokenizer.pad_token_id)
    ids: dict[str, Any] = {
        "pad_token_id": pad,
        "eos_token_id": end,
        "bos_token_id": None,
        "decoder_start_token_id": pad,
    }
    config = (
        T5Config(vocab_size=512, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, **ids)
        if kind is TextToTextBeamsHead
        else GPT2Config(vocab_size=512, n_embd=32, n_layer=2, n_head=2, n_positions=64, **ids)
    )
    written = []
    for penalty in (0.0, 8.0):
        torch.manual_seed(0)
        head = kind(beams=4, length_penalty=penalty, longest=2)
        network = head.build(config, TASK).eval()
        assert network.generation_config is not None
        assert (network.generation_config.num_beams, network.generation_config.length_penalty) == (4, penalty)
        items = _items(head, tokenizer)
        batch = {name: torch.from_numpy(value) for name, value in items.collate(np.arange(3)).items()}
        likely = network.get_output_embeddings().register_forward_hook(partial(_set_score, end))
        texts = head._generate_for(network, items, np.arange(3), batch, tokenizer)
        likely.remove()
        written.append([[token for token in row if token != pad] for row in texts.tolist()])
    assert all(row == [end] for row in written[0]), "the likeliest text ends at once"
    assert all(len(row) == 2 for row in written[1]), "per token, a longer one is as good"


def _set_score(token: int, module: Any, inputs: Any, scores: Tensor) -> Tensor:
    """The `scores` of a vocabulary with one for `token` that makes it the likeliest by a little."""
    return scores.index_fill(-1, torch.tensor(token), 4.0)


def test_one_beam_is_refused_where_the_head_is_for_several() -> None:
    for kind in (TextToTextBeamsHead, ContinuationBeamsHead, CopiedDecoderBeamsHead):
        with pytest.raises(ValueError, match="greater than or equal to 2"):
            kind(beams=1)
