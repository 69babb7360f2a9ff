"""The loss of BART: restoring a row from its noise, against transformers' own loss and the paper's cross-entropy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BartForConditionalGeneration, PreTrainedTokenizerFast

from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.corruptions import Corruption, TokenIds
from pipelines.parts.heads.sequence_to_sequence import SequenceToSequenceHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.sequence_to_sequence import SequenceToSequence
from pipelines.vocabulary import Field, Signal

NOISES = ["text_infilling", "token_deletion", "sentence_permutation", "document_rotation"]


@pytest.mark.parametrize("noise", NOISES)
def test_the_loss_is_the_cross_entropy_of_the_clean_row(noise: str, tokenizer: PreTrainedTokenizerFast) -> None:
    random = np.random.default_rng(0)
    ids = random.integers(10, len(tokenizer), size=(4, 24))
    ids[:, -1] = tokenizer.sep_token_id
    texts = tuple(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))))
    tokens = TokenIds(
        len(tokenizer), int(tokenizer.mask_token_id), tuple(tokenizer.all_special_ids), int(tokenizer.pad_token_id),
        int(tokenizer.sep_token_id), texts=texts,
    )  # fmt: skip
    arrays = {Field.INPUT_IDS: ids, Field.ORIGINAL_IDS: ids}
    for name in (noise, "original_as_target"):
        arrays = Corruption.model_validate(name).apply(arrays, tokens, random)
    batch = {name: torch.from_numpy(value) for name, value in arrays.items()}
    torch.manual_seed(0)
    config = Transformer(architecture="bart", positions=32).tiny().config(tokenizer, 32)
    body = SequenceToSequenceHead().build(config, None).eval()
    assert isinstance(body, BartForConditionalGeneration)
    signals = SequenceToSequenceHead().signals(body, batch, frozenset({Signal.TARGET_LOGITS}))
    ours = SequenceToSequence().loss(TrainingStep(batch, signals, body, lambda *_: {}))["sequence_to_sequence"]
    mask = batch[Field.ATTENTION_MASK]
    theirs = body(input_ids=batch[Field.INPUT_IDS], attention_mask=mask, labels=batch[Field.ORIGINAL_IDS]).loss
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()), rel=1e-6)
    # padding of the noisy row changes nothing: each row alone, without it
    double, total = body.double(), 0.0
    for inputs, real, target in zip(batch[Field.INPUT_IDS], mask, batch[Field.ORIGINAL_IDS], strict=True):
        read = torch.cat([torch.tensor([config.decoder_start_token_id]), target[:-1]])
        with torch.no_grad():
            logits = double(input_ids=inputs[real == 1][None], decoder_input_ids=read[None]).logits[0]
        total -= float(logits.log_softmax(-1)[torch.arange(len(target)), target].sum())
    assert float(ours.detach()) == pytest.approx(total / ids.size, rel=1e-5)
