"""Answers in texts: windows, offsets, loss and choice of the span, on English and Chinese."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertForQuestionAnswering, PreTrainedTokenizerFast

from pipelines.errors import DataError, RecipeError
from pipelines.parts.heads.span_extraction import SpanExtractionHead, best_spans
from pipelines.parts.objectives.span_cross_entropy import SpanCrossEntropy
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.heads.small_parts import loss_of, small_network, task_of, tensors
from tests.small_corpus import documents

TASK = task_of("span_extraction")
LU_XUN = (
    "我冒了严寒，回到相隔二千余里，别了二十余年的故乡去。时候既然是深冬；渐近故乡时，天气又阴晦了，冷风吹进船舱中，"
    "呜呜的响，从篷隙向外一望，苍黄的天底下，远近横着几个萧索的荒村，没有一些活气。我的心禁不住悲凉起来了。"
)
"""The beginning of a story of 1921."""


def english() -> list[dict[str, object]]:
    """A word of each text asked for, wherever it stands; every fifth question without answer."""
    rows = []
    for number, text in enumerate(documents("logging")[:25]):
        words = list(re.finditer(r"\w+( \w+)?", text))
        word = words[number * 7 % len(words)]
        texts, starts = ([], []) if number % 5 == 4 else ([word[0]], [word.start()])
        rows.append({"context": text, "question": f"Which, {number}?", "answer_texts": texts, "answer_starts": starts})
    return rows


def chinese() -> list[dict[str, object]]:
    return [
        {"context": LU_XUN, "question": "哪里？", "answer_texts": [part], "answer_starts": [LU_XUN.index(part)]}
        for part in ("严寒", "故乡", "二千余里", "冷风吹进船舱中", "悲凉起来了", "萧索的荒村")
    ]


def unigram() -> PreTrainedTokenizerFast:
    """Pieces with their space before them, no frame but an end, as T5's."""
    fast = Tokenizer(models.Unigram())
    fast.normalizer, fast.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=600, special_tokens=special, unk_token="<unk>", show_progress=False)
    fast.train_from_iterator([*documents("logging", "email"), LU_XUN], trainer)
    end = ("</s>", fast.token_to_id("</s>"))
    fast.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[end])
    return PreTrainedTokenizerFast(tokenizer_object=fast, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def byte_level() -> PreTrainedTokenizerFast:
    """Bytes: a Chinese character is several tokens."""
    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "<pad>"], initial_alphabet=alphabet, show_progress=False
    )
    fast.train_from_iterator(documents("logging", "email"), trainer)
    fast.post_processor = processors.TemplateProcessing(
        single="<s> $A <s>", pair="<s> $A <s> <s> $B <s>", special_tokens=[("<s>", fast.token_to_id("<s>"))]
    )
    return PreTrainedTokenizerFast(tokenizer_object=fast, pad_token="<pad>", cls_token="<s>")


TOKENIZERS = {
    "wordpiece": lambda: WordPiece(vocab_size=600).train([*documents("logging", "email"), LU_XUN]),
    "bytes": byte_level,
    "unigram": unigram,
}


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("length", [24, 64, 400])
def test_answers_are_recovered_to_the_character(kind: str, length: int) -> None:
    tokenizer = TOKENIZERS[kind]()
    rows = [*english(), *chinese()]
    head = SpanExtractionHead(longest_answer=1000)
    encoded = head.encode(rows, TASK, tokenizer, length)
    assert encoded.lengths.max() <= length and list(encoded.owners) == sorted(encoded.owners)
    items = np.arange(len(encoded))
    batch = encoded.collate(items)
    labels = batch[Field.SPAN_LABELS]
    # a network that is sure of the right span, and of no answer where the window holds none
    scores = torch.full((len(items), batch[Field.INPUT_IDS].shape[1], 2), float("-inf"))
    scores[:, 0] = 0.0
    for edge in (0, 1):
        scores[items, labels[:, edge], edge] = torch.where(torch.from_numpy(labels[:, 0] == 0), 0.0, 5.0)
    heard = [(items, {}, {Signal.SPAN_LOGITS: scores})]
    answers = head.answer(torch.nn.Identity(), encoded, heard, TASK, tokenizer)  # type: ignore[arg-type]
    texts = [(row["answer_texts"] or [""])[0] for row in rows]
    held = [bool(labels[encoded.owners == index].any()) for index in range(len(rows))]
    assert sum(held) >= (24 if length > 24 else 18), "of 26, but for those longer than what windows share"
    for text, answer, found in zip(texts, answers, held, strict=True):
        # a piece may be more than the answer where its edge lies within a word's piece
        assert (text in answer and len(answer) <= len(text) + 12) if found and text else answer == ""
    exact = sum(text == answer for text, answer, found in zip(texts, answers, held, strict=True) if found)
    assert exact == sum(held) or (kind == "unigram" and exact >= 0.8 * sum(held))


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_windows_cover_the_whole_text_and_keep_the_question(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]()
    rows = [*english(), *chinese()]
    encoded = SpanExtractionHead(overlap=0.3).encode(rows, TASK, tokenizer, 32, answers=False)
    for index, row in enumerate(rows):
        seen = np.zeros(len(str(row["context"])), dtype=bool)
        for item in np.flatnonzero(encoded.owners == index):
            for begin, end in encoded.window(item).characters[encoded.window(item).answerable == 1]:
                seen[begin:end] = True
        missing = "".join(c for c, there in zip(str(row["context"]), seen, strict=True) if not there)
        assert missing.strip() == ""
    batch = encoded.collate(np.arange(len(encoded)))
    assert Field.SPAN_LABELS not in batch and not batch[Field.ANSWERABLE][:, 0].any()
    question = tokenizer("Which, 0?", add_special_tokens=False)["input_ids"]
    first = batch[Field.INPUT_IDS][encoded.owners == 0]
    assert len(first) > 1 and all("".join(map(chr, question)) in "".join(map(chr, ids)) for ids in first)


def test_the_loss_is_hugging_faces_own_over_what_may_be_an_answer(tokenizer: PreTrainedTokenizerFast) -> None:
    head = SpanExtractionHead()
    network = small_network(head, TASK, tokenizer)
    encoded = head.encode(english(), TASK, tokenizer, 48)
    batch = tensors(encoded, np.arange(12))
    assert batch[Field.SPAN_LABELS].any()
    signals = head.signals(network, batch, frozenset())
    theirs = BertForQuestionAnswering(network.config).eval()
    theirs.load_state_dict(network.state_dict(), strict=True)
    inputs = {
        str(batch_name): batch[batch_name]
        for batch_name in batch
        if batch_name not in (Field.SPAN_LABELS, Field.ANSWERABLE)
    }
    first, last = batch[Field.SPAN_LABELS].T
    everywhere = batch | {Field.ANSWERABLE: torch.ones_like(batch[Field.INPUT_IDS])}
    ours = loss_of(SpanCrossEntropy(), batch, head.signals(network, everywhere, frozenset()))
    expected = theirs(**inputs, start_positions=first, end_positions=last)
    torch.testing.assert_close(ours, expected.loss, atol=1e-6, rtol=0)
    outside = (batch[Field.ANSWERABLE] == 0) & (torch.arange(48) > 0)
    assert torch.equal(torch.isneginf(signals[Signal.SPAN_LOGITS]).all(-1), outside)
    assert torch.equal(signals[Signal.SPAN_LOGITS][..., 0][~outside], expected.start_logits[~outside])
    loss_of(SpanCrossEntropy(), batch, signals).backward()
    assert network.qa_outputs.weight.grad.isfinite().all() and network.qa_outputs.weight.grad.any()


@pytest.mark.parametrize("longest", [1, 3, 50])
def test_the_best_span_is_the_best_of_all(longest: int) -> None:
    torch.manual_seed(longest)
    scores = torch.randn(5, 12, 2)
    scores[:, 7:9] = scores[1, 1:] = float("-inf")
    values, first, last = best_spans(scores, longest)
    for row in range(5):
        every = {
            (a, b): float(scores[row, a, 0] + scores[row, b, 1])
            for a in range(1, 12)
            for b in range(a, min(12, a + longest))
        }
        assert float(values[row]) == max(every.values())
        assert row == 1 or every[int(first[row]), int(last[row])] == float(values[row])


def test_no_answer_is_weighed_against_the_best_span_by_the_threshold(tokenizer: PreTrainedTokenizerFast) -> None:
    row = english()[0]
    encoded = SpanExtractionHead().encode([row], TASK, tokenizer, 400)
    (inside,) = np.nonzero(encoded.collate(np.array([0]))[Field.ANSWERABLE][0])
    scores = torch.full((1, 400, 2), float("-inf"))
    scores[0, 0], scores[0, inside[2]] = 1.0, 1.5  # no answer scores 2, the span 3
    heard = [(np.array([0]), {}, {Signal.SPAN_LOGITS: scores})]
    for threshold, given in ((0.0, True), (0.9, True), (1.1, False), (-5.0, True), (None, True)):
        head = SpanExtractionHead(null_threshold=threshold)
        (answer,) = head.answer(torch.nn.Identity(), encoded, heard, TASK, tokenizer)  # type: ignore[arg-type]
        assert bool(answer) is given
    scores[0, 0] = 9.0
    for threshold in (0.0, None):
        head = SpanExtractionHead(null_threshold=threshold)
        (answer,) = head.answer(torch.nn.Identity(), encoded, heard, TASK, tokenizer)  # type: ignore[arg-type]
        assert bool(answer) is (threshold is None)


def test_a_long_question_is_shortened(tokenizer: PreTrainedTokenizerFast) -> None:
    long = {**english()[0], "question": " ".join(documents("json"))[:3000]}
    encoded = SpanExtractionHead().encode([long], TASK, tokenizer, 64)
    first = encoded.collate(np.array([0]))
    assert encoded.lengths.max() <= 64 and 31 <= first[Field.ANSWERABLE].sum() < 64


def test_mistakes_are_told(tokenizer: PreTrainedTokenizerFast) -> None:
    head, rows = SpanExtractionHead(), english()
    with pytest.raises(DataError, match="example 1: the answer 'elsewhere' is not at character 3"):
        head.encode([rows[0], {**rows[1], "answer_texts": ["elsewhere"], "answer_starts": [3]}], TASK, tokenizer, 64)
    with pytest.raises(DataError, match="example 0: the column 'question' is empty"):
        head.encode([{**rows[0], "question": " "}], TASK, tokenizer, 64)
    with pytest.raises(RecipeError, match=r"budget\.length: 4 tokens have no room for a question"):
        head.encode(rows, TASK, tokenizer, 4)
