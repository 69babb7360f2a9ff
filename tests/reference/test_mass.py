"""The loss of MASS: BART's network of transformers on a masked fragment, against the paper's product of probabilities
and transformers' own loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BartForConditionalGeneration, PreTrainedTokenizerFast

from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.corruptions import TokenIds
from pipelines.parts.corruptions.masked_fragment import MaskedFragment
from pipelines.parts.heads.sequence_to_sequence import SequenceToSequenceHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.sequence_to_sequence import SequenceToSequence
from pipelines.vocabulary import Field, Signal

ROWS, LENGTH = 3, 12


def batch_of(tokenizer: PreTrainedTokenizerFast, part: MaskedFragment) -> dict[Field, torch.Tensor]:
    random = np.random.default_rng(0)
    ids = random.integers(10, len(tokenizer), size=(ROWS, LENGTH))
    tokens = TokenIds(len(tokenizer), int(tokenizer.mask_token_id), tuple(tokenizer.all_special_ids))
    return {name: torch.from_numpy(value) for name, value in part.apply({Field.INPUT_IDS: ids}, tokens, random).items()}


def network(tokenizer: PreTrainedTokenizerFast) -> BartForConditionalGeneration:
    torch.manual_seed(0)
    config = Transformer(architecture="bart", positions=32).tiny().config(tokenizer, 32)
    built = SequenceToSequenceHead().build(config, None)
    assert isinstance(built, BartForConditionalGeneration)
    return built.eval()


@pytest.mark.parametrize("part", [MaskedFragment(), MaskedFragment(tokens=1), MaskedFragment(rate=1, mask=1, random=0)])
def test_the_loss_is_the_papers_and_that_of_transformers(
    part: MaskedFragment, tokenizer: PreTrainedTokenizerFast
) -> None:
    body, batch = network(tokenizer), batch_of(tokenizer, part)
    signals = SequenceToSequenceHead().signals(body, batch, frozenset({Signal.TARGET_LOGITS}))
    ours = SequenceToSequence().loss(TrainingStep(batch, signals, body, lambda *_: {}))["sequence_to_sequence"]
    theirs = body(input_ids=batch[Field.INPUT_IDS], labels=batch[Field.TARGET_IDS]).loss
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()), rel=1e-6)
    # log P(x^{u:v} | x^{\u:v}) token by token (§3.2), with what the decoder may read written out (figure 1)
    double, total, count = body.double(), 0.0, 0
    for inputs, target in zip(batch[Field.INPUT_IDS], batch[Field.TARGET_IDS], strict=True):
        inside = torch.nonzero(target >= 0).flatten().tolist()
        for position in inside:
            read = torch.full((LENGTH,), int(tokenizer.pad_token_id))
            read[0] = body.config.decoder_start_token_id
            for earlier in inside:
                if earlier < position:
                    read[earlier + 1] = target[earlier]
            with torch.no_grad():
                logits = double(input_ids=inputs[None], decoder_input_ids=read[None, : position + 1]).logits[0, -1]
            total -= float(logits.log_softmax(-1)[target[position]])
            count += 1
    assert float(ours.detach()) == pytest.approx(total / count, rel=1e-5)


def test_every_dropout_of_the_network_has_the_rate_of_the_stage(tokenizer: PreTrainedTokenizerFast) -> None:
    from pipelines.training.assembly.assemble import set_dropout

    body, batch = network(tokenizer).train(), batch_of(tokenizer, MaskedFragment())
    assert body.config.dropout == 0.1
    head, asked = SequenceToSequenceHead(), frozenset({Signal.TARGET_LOGITS})

    def logits() -> torch.Tensor:
        return head.signals(body, batch, asked)[Signal.TARGET_LOGITS]

    assert not torch.equal(logits(), logits())
    set_dropout(body, 0.0)
    assert torch.equal(logits(), logits())
