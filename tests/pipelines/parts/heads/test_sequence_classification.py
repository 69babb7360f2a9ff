"""Classification of texts and pairs, over every body, against plain transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, BertForSequenceClassification, GPT2LMHeadModel, PreTrainedTokenizerFast

from pipelines.errors import DataError, RecipeError
from pipelines.networks.sequence_classifier import RowNorm, SequenceClassifier, pool
from pipelines.parts.heads.sequence_classification import SequenceClassificationHead
from pipelines.parts.objectives.cross_entropy import CrossEntropy
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.heads.small_parts import BODIES, loss_of, small_config, small_network, task_of, tensors
from tests.small_corpus import documents

TEXTS = [{"text": text, "label": label} for label in ("email", "xml") for text in documents(label)[:4]]
TASK = task_of("text_classification", "email", "xml")
PAIRS = [
    {"text_a": a, "text_b": b, "label": str(i % 2)}
    for i, (a, b) in enumerate(zip(documents("xml")[:5], documents("json")[:5], strict=True))
]
PAIR_TASK = task_of("pair_classification", "0", "1")
EVERY = np.arange(8)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("pooling", ["cls", "mean", "last", "concat"])
@torch.no_grad()
def test_padding_changes_nothing(body: str, pooling: str, tokenizer: PreTrainedTokenizerFast) -> None:
    head = SequenceClassificationHead(pooling=pooling)
    network = small_network(head, TASK, tokenizer, body)
    encoded = head.encode(TEXTS, TASK, tokenizer, 40)
    together = head.signals(network, tensors(encoded, EVERY), frozenset())[Signal.LOGITS]
    for item in EVERY:
        batch = tensors(encoded, EVERY[item : item + 1])
        length = int(encoded.lengths[item])
        alone = {n: v[:, :length] if v.ndim == 2 else v for n, v in batch.items() if n != Field.ATTENTION_MASK}
        # another shape of batch sums in another order
        said = head.signals(network, alone, frozenset())[Signal.LOGITS]
        torch.testing.assert_close(said[0], together[item], atol=1e-5, rtol=0)


def test_pooling_is_what_it_says() -> None:
    states, mask = torch.randn(2, 5, 3), torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    for row, length in enumerate((3, 5)):
        real = states[row, :length]
        last, highest, mean = real[-1], real.max(0).values, real.mean(0)
        torch.testing.assert_close(pool(states, mask, "concat")[row], torch.cat([last, highest, mean]))
        torch.testing.assert_close(pool(states, mask, "mean")[row], mean)
        assert torch.equal(pool(states, mask, "last")[row], last)
        assert torch.equal(pool(states.flip(1), mask.flip(1), "last")[row], real[0])
        assert torch.equal(pool(states, mask, "cls")[row], real[0])


@pytest.mark.parametrize(
    ("rows", "task", "pooling"), [(TEXTS, TASK, "cls"), (PAIRS, PAIR_TASK, "cls"), (PAIRS, PAIR_TASK, "pooler")]
)
def test_the_loss_is_that_of_hugging_faces_own_classifier(
    rows: list[dict[str, str]], task: object, pooling: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    head = SequenceClassificationHead.model_validate({"pooling": pooling})
    network = small_network(head, task, tokenizer)  # type: ignore[arg-type]
    batch = tensors(head.encode(rows, task, tokenizer, 48), np.arange(len(rows)))  # type: ignore[arg-type]
    theirs = BertForSequenceClassification(network.config).eval()
    assert not theirs.load_state_dict(network.state_dict(), strict=False).unexpected_keys
    if pooling == "cls":
        theirs.bert.pooler = _FirstToken()
    columns = ("text",) if "text" in rows[0] else ("text_a", "text_b")
    texts = [[row[name] for row in rows] for name in columns]
    inputs = tokenizer(*texts, truncation=True, max_length=48, padding=True, pad_to_multiple_of=8, return_tensors="pt")
    assert all(torch.equal(inputs[name], batch[Field(name)]) for name in inputs)
    expected = theirs(**inputs, labels=batch[Field.LABELS]).loss
    ours = loss_of(CrossEntropy(), batch, head.signals(network, batch, frozenset()))
    torch.testing.assert_close(ours, expected, atol=1e-6, rtol=0)


class _FirstToken(torch.nn.Module):
    """Our classifier has no dense layer between the first token and the scores."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return states[:, 0]


@pytest.mark.parametrize("body", BODIES)
@torch.no_grad()
def test_a_saved_body_opens_under_the_auto_class(body: str, tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    head = SequenceClassificationHead(pooling="concat", hidden=7)
    network = small_network(head, TASK, tokenizer, body)
    network.save_pretrained(tmp_path)
    batch = tensors(head.encode(TEXTS, TASK, tokenizer, 40), EVERY)
    inputs = {"input_ids": batch[Field.INPUT_IDS]}
    theirs = AutoModel.from_pretrained(tmp_path, attn_implementation="eager")(**inputs)
    assert torch.equal(theirs.last_hidden_state, network(**inputs).last_hidden_state)
    again = small_network(head, TASK, tokenizer, body)
    again.apply(lambda module: [p.zero_() for p in module.parameters(recurse=False)])
    again.load_state_dict(load_file(tmp_path / "model.safetensors"), strict=True)
    assert torch.equal(again(**inputs).logits, network(**inputs).logits)
    # a compression makes a network of a configuration alone
    assert SequenceClassifier(network.config).state_dict().keys() == network.state_dict().keys()


@torch.no_grad()
def test_both_orders_of_a_pair_are_added(tokenizer: PreTrainedTokenizerFast) -> None:
    head, once = (
        SequenceClassificationHead(both_orders=True, pooling="last"),
        SequenceClassificationHead(pooling="last"),
    )
    network, single = (small_network(one, PAIR_TASK, tokenizer, "gpt2") for one in (head, once))
    encoded = head.encode(PAIRS, PAIR_TASK, tokenizer, 48)
    chosen = np.array([3, 0])
    batch = tensors(encoded, chosen)
    assert batch[Field.INPUT_IDS].shape[0] == 4 and batch[Field.LABELS].tolist() == [1, 0]
    turned = [{"text_a": PAIRS[i]["text_b"], "text_b": PAIRS[i]["text_a"], "label": "0"} for i in chosen]
    straight = [PAIRS[i] for i in chosen]
    vectors = [
        once.signals(single, tensors(once.encode(rows, PAIR_TASK, tokenizer, 48), np.arange(2)), frozenset())
        for rows in (straight, turned)
    ]
    said = head.signals(network, batch, frozenset())
    added = vectors[0][Signal.POOLED] + vectors[1][Signal.POOLED]
    torch.testing.assert_close(said[Signal.POOLED], added, atol=1e-5, rtol=0)
    torch.testing.assert_close(said[Signal.LOGITS], single.classifier(added), atol=1e-5, rtol=0)


@torch.no_grad()
def test_next_logits_are_those_of_the_language_model(tokenizer: PreTrainedTokenizerFast) -> None:
    head = SequenceClassificationHead(pooling="last")
    network = small_network(head, TASK, tokenizer, "gpt2")
    batch = tensors(head.encode(TEXTS, TASK, tokenizer, 32), EVERY)
    theirs = GPT2LMHeadModel(network.config).eval()
    theirs.transformer.load_state_dict(network.transformer.state_dict())
    del batch[Field.TOKEN_TYPE_IDS]
    expected = theirs(batch[Field.INPUT_IDS], attention_mask=batch[Field.ATTENTION_MASK]).logits
    ours = head.signals(network, batch, frozenset({Signal.NEXT_LOGITS}))[Signal.NEXT_LOGITS]
    torch.testing.assert_close(ours, expected, atol=1e-6, rtol=0)
    for body in ("bert", "word_vectors"):
        other = small_network(head, TASK, tokenizer, body)
        with pytest.raises(RecipeError, match="causal backbone with tied embeddings"):
            head.signals(other, batch, frozenset({Signal.NEXT_LOGITS}))


def test_the_block_normalises_a_single_row_as_in_evaluation(tokenizer: PreTrainedTokenizerFast) -> None:
    norm = RowNorm(4)
    norm(torch.randn(16, 4) * 3 + 1)
    row = torch.randn(1, 4)
    trained = norm.train()(row)
    assert torch.equal(trained, norm.eval()(row))
    rows = torch.randn(6, 4)
    plain = torch.nn.functional.batch_norm(rows, None, None, norm.weight, norm.bias, training=True)
    torch.testing.assert_close(norm.train()(rows), plain)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_choice_that_is_not_there_takes_no_part_in_the_loss(smoothing: float) -> None:
    logits, labels = torch.randn(4, 3), torch.tensor([0, 1, 2, 1])
    wider = torch.cat([logits, torch.full((4, 2), float("-inf"))], dim=1).requires_grad_()
    ours = loss_of(CrossEntropy(smoothing=smoothing), {Field.LABELS: labels}, {Signal.LOGITS: wider})
    expected = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=smoothing)
    torch.testing.assert_close(ours, expected, atol=1e-6, rtol=0)
    (slope,) = torch.autograd.grad(ours, wider)
    assert slope.isfinite().all() and not slope[:, 3:].any()


def test_answers_come_back_in_the_order_of_the_examples(tokenizer: PreTrainedTokenizerFast) -> None:
    head = SequenceClassificationHead()
    network = small_network(head, TASK, tokenizer)
    bare = [{"text": row["text"]} for row in TEXTS]
    encoded = head.encode(bare, TASK, tokenizer, 40, answers=False)
    assert Field.LABELS not in encoded.collate(EVERY)
    said = {item: torch.tensor([[float(item % 3 == 0), 0.5]]) for item in range(8)}
    heard = [(np.array([item]), {}, {Signal.LOGITS: said[item]}) for item in (5, 2, 7, 0, 1, 3, 6, 4)]
    expected = ["email" if item % 3 == 0 else "xml" for item in range(8)]
    assert head.answer(network, encoded, heard, TASK, tokenizer) == expected


def test_mistakes_are_told(tokenizer: PreTrainedTokenizerFast) -> None:
    head = SequenceClassificationHead()
    with pytest.raises(DataError, match=r"example 1: the column 'text_a' is missing"):
        head.encode([PAIRS[0], TEXTS[0]], PAIR_TASK, tokenizer, 40)
    with pytest.raises(DataError, match=r"example 8: no training example has its label 'json'; known: email, xml"):
        head.encode([*TEXTS, {"text": "x", "label": "json"}], TASK, tokenizer, 40)
    with pytest.raises(RecipeError, match=r"budget\.length: 3 tokens have no room besides 3 special tokens"):
        head.encode(PAIRS, PAIR_TASK, tokenizer, 3)
    unfit = SequenceClassificationHead(both_orders=True).unfit(TASK.family)
    assert unfit is not None and "an example of text_classification is not a text pair" in unfit
    assert SequenceClassificationHead(both_orders=True).unfit(PAIR_TASK.family) is None
    with pytest.raises(RecipeError, match="t5 is an encoder-decoder"):
        BODIES["t5"] = {"d_model": 32}
        try:
            head.build(small_config("t5", tokenizer), TASK)
        finally:
            del BODIES["t5"]
