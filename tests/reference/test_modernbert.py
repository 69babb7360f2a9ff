"""ModernBERT as this project trains it: transformers' own loss and states, also of documents that share a row."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.networks.document_attention import attend_within_documents, documents_of
from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.compressions.feed_forward_widths import FeedForwardWidths
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.masked_lm import MaskedLM
from pipelines.recipe.problems import Setting
from pipelines.vocabulary import Signal
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import labelled
from tests.reference.masked_text import EXACT, build, hugging_face, masked_batch


@torch.no_grad()
def test_its_loss_is_that_of_transformers(tokenizer: PreTrainedTokenizerFast) -> None:
    head, batch = MaskedLMHead(), masked_batch(tokenizer)
    network = build(head, "modernbert", tokenizer)
    signals = head.signals(network, batch, frozenset({Signal.MASKED_LOGITS}))
    terms = MaskedLM().loss(TrainingStep(batch, signals, network, lambda *_: {}))
    theirs = network(**hugging_face(batch)).loss
    assert float(sum(terms.values())) == pytest.approx(float(theirs), rel=10 * EXACT)


@torch.no_grad()
def test_documents_of_a_row_are_read_as_if_alone_in_windows_too(tokenizer: PreTrainedTokenizerFast) -> None:
    """Unpadded, against each document in a row of its own, padded, as transformers reads them with sdpa."""
    head = MaskedLMHead()
    dims = {"local_attention": 16, "num_hidden_layers": 4}
    tiny = Transformer(architecture="modernbert").tiny()
    config = tiny.model_copy(update={"dims": {**tiny.dims, **dims}}).config(tokenizer, 64)
    assert config.layer_types == ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    torch.manual_seed(0)
    network = head.build(config, None).eval()
    for value in network.parameters():
        value.add_(torch.randn_like(value) * 0.1)
    lengths, length = (40, 24), 64
    ids = torch.randint(5, len(tokenizer), (1, length), generator=torch.Generator().manual_seed(1))
    padded, mask = torch.zeros(2, length, dtype=torch.long), torch.zeros(2, length, dtype=torch.long)
    padded[0, :40], padded[1, :24] = ids[0, :40], ids[0, 40:]
    for row, size in enumerate(lengths):
        mask[row, :size] = 1
    network.set_attn_implementation("sdpa")
    alone = network.base_model(input_ids=padded, attention_mask=mask).last_hidden_state
    positions = torch.cat([torch.arange(size) for size in lengths])[None]
    attend_within_documents(network)
    packed = network.base_model(
        input_ids=ids, position_ids=positions, documents=documents_of((positions == 0).long())
    ).last_hidden_state[0]
    torch.testing.assert_close(packed, torch.cat([alone[0, :40], alone[1, :24]]), atol=1e-4, rtol=0)
    unwindowed = network.base_model
    for layer in unwindowed.layers:
        layer.attn.sliding_window = None
    without = unwindowed(input_ids=ids, position_ids=positions, documents=documents_of((positions == 0).long()))
    assert (without.last_hidden_state[0] - packed).abs().max() > 1e-3, "windows matter here"


def test_what_its_gates_and_windows_do_not_fit_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    network = build(MaskedLMHead(), "modernbert", tokenizer)
    with pytest.raises(RecipeError, match="no feed-forward layers are known of the backbone modernbert.*bert"):
        FeedForwardWidths().choose(network, None)
    attend_within_documents(network)
    ids = torch.randint(5, 50, (1, 8))
    with pytest.raises(ValueError, match="an attention pattern is not supported in layers with a window"):
        network.base_model(input_ids=ids, attention_mask=torch.ones(1, 1, 8, 8))
    with pytest.raises(ValueError, match="modernbert has relative positions and no maximum length"):
        Transformer(architecture="modernbert", positions=64)


def test_its_special_tokens_are_those_of_the_tokenizer(tokenizer: PreTrainedTokenizerFast) -> None:
    config = Transformer(architecture="modernbert").tiny().config(tokenizer, 64)
    expected = (tokenizer.pad_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id)
    assert (config.pad_token_id, config.cls_token_id, config.sep_token_id) == expected
    assert Architecture.of(config) is not None


def test_a_pooling_that_its_configuration_cannot_record_is_refused_when_loaded(tmp_path: Path) -> None:
    body = "{name: transformer, architecture: modernbert}"
    recipe = labelled(general={"backbone": body}, head="{name: sequence_classification, pooling: concat}")
    setting = Setting("text_classification", "en")
    message = refusal(tmp_path, "meeting", recipe, setting)
    check_refusal(message, ("head: transformer modernbert cannot record the pooling concat; choose cls, mean",))
