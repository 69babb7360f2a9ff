"""Two vocabularies in one tokenizer, words of both in a row, and weights that follow a teacher's (Zhao et al. 2019)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from transformers import BertConfig, BertForMaskedLM, PretrainedConfig, PreTrainedModel

from pipelines.errors import RecipeError
from pipelines.networks.shape import NetworkShape
from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.mixed_subwords import MixedSubwords
from pipelines.parts.objectives import Companion, TrainingStep
from pipelines.parts.objectives.projected_weights import ProjectedWeights
from pipelines.parts.tokenizers.dual_wordpiece import DualWordPiece
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.vocabulary import Channel, Field
from tests.small_corpus import documents

STUDENT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "com", "a", "##put", "##e", "##r", "##ation", "##com")
TEXTS = (*STUDENT, "comput", "computer", "##ers", "a's", "##s")
IDS = {text: number for number, text in enumerate(TEXTS)}
TOKENS = TokenIds(len(TEXTS), 4, (0, 1, 2, 3, 4), end=3, texts=TEXTS, student_tokens=len(STUDENT))
ALL = MixedSubwords(share=1)


def cut(*row: str, **fields: NDArray[np.int64]) -> Arrays:
    batch = {Field.INPUT_IDS: np.array([[IDS[one] for one in row]])}
    return ALL.apply({**batch, **{Field(name): value for name, value in fields.items()}}, TOKENS, generator())


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


def texts(ids: NDArray[np.int64]) -> list[str]:
    return [TEXTS[one] for one in ids]


def test_the_student_s_vocabulary_is_the_beginning_of_the_teacher_s() -> None:
    corpus = documents("json", "argparse")
    dual = DualWordPiece(vocab_size=1024, student_size=300).train(corpus)
    student = WordPiece(vocab_size=300).train(corpus).get_vocab()
    vocabulary = dual.get_vocab()
    assert dual.init_kwargs["student_tokens"] == len(student) == 300 and len(vocabulary) == 1024
    assert {token: index for token, index in vocabulary.items() if index < 300} == student
    # what wordpiece alone would learn at the large size is nearly all in it
    large = WordPiece(vocab_size=1024).train(corpus)
    assert len(large.get_vocab().keys() & vocabulary.keys()) > 0.97 * 1024
    assert len(dual.tokenize(corpus[0])) < 0.9 * len(WordPiece(vocab_size=300).train(corpus).tokenize(corpus[0])), (
        "it writes text in the tokens of the large vocabulary"
    )
    with pytest.raises(ValidationError, match=r"student_size \(300\) counts among the 300 tokens of vocab_size"):
        DualWordPiece(vocab_size=300, student_size=300)


def test_words_are_cut_greedily_into_the_student_s_tokens_and_what_it_cannot_write_stays() -> None:
    # "computation": greedy over the whole word, not over each of the teacher's tokens
    result = cut("[CLS]", "comput", "##ation", "a's", "computer", "a", "[SEP]", "[PAD]", "[PAD]")
    assert texts(result[Field.INPUT_IDS][0]) == [
        "[CLS]", "com", "##put", "##ation", "a's", "com", "##put", "##e", "##r",
    ]  # fmt: skip
    # a row that begins within a word keeps that part of it, and is filled up where it has fewer tokens
    result = cut("##ers", "a", "[PAD]", attention_mask=np.array([[1, 1, 0]]))
    assert texts(result[Field.INPUT_IDS][0]) == ["##ers", "a", "[PAD]"]
    assert result[Field.ATTENTION_MASK].tolist() == [[1, 1, 0]]
    result = cut("computer", "##s", "a", "[PAD]", "[PAD]", "[PAD]", attention_mask=np.array([[1, 1, 1, 0, 0, 0]]))
    assert texts(result[Field.INPUT_IDS][0]) == ["computer", "##s", "a", "[PAD]", "[PAD]", "[PAD]"], "no ##s"
    assert result[Field.ATTENTION_MASK].sum() == 3


def test_channels_follow_and_new_tokens_begin_no_word() -> None:
    field = Channel("numbers", 100).field
    result = cut(
        "computer", "a", "comput", "##ation", "a", "a", "a",
        word_starts=np.array([[1, 1, 1, 0, 1, 1, 1]]), numbers=np.arange(7)[None],
    )  # fmt: skip
    assert texts(result[Field.INPUT_IDS][0]) == ["com", "##put", "##e", "##r", "a", "com", "##put"]
    assert result[field].tolist() == [[0, 0, 0, 0, 1, 2, 3]]
    assert result[Field.WORD_STARTS].tolist() == [[1, 0, 0, 0, 1, 1, 0]]


def test_about_a_share_of_the_words_is_cut() -> None:
    batch = {Field.INPUT_IDS: np.full((40, 50), IDS["comput"])}
    result = MixedSubwords(share=0.3).apply(batch, TOKENS, np.random.default_rng(1))
    # a word that is cut has two tokens, so that 0.3 · 2 / (0.7 + 0.3 · 2) of all are the student's
    assert (result[Field.INPUT_IDS] < len(STUDENT)).mean() == pytest.approx(0.6 / 1.3, abs=0.04)


def bert(hidden: int, inner: int, vocabulary: int, layers: int = 2) -> PreTrainedModel:
    torch.manual_seed(hidden)
    config = BertConfig(
        vocab_size=vocabulary, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
        num_attention_heads=2, max_position_embeddings=16,
    )  # fmt: skip
    return BertForMaskedLM(config).double()


class Teaching:
    """The companions of a stage whose teacher is `wide`."""

    def __init__(self, network: PreTrainedModel, wide: PreTrainedModel, shared_ids: torch.Tensor | None) -> None:
        self.network = network
        self._teacher = Companion(wide, lambda batch, requested: {}, shared_ids=shared_ids)

    def teacher(self) -> Companion:
        return self._teacher

    def trained(self, name: str, head: str, config: PretrainedConfig) -> Companion:
        raise NotImplementedError


@pytest.mark.parametrize("direction", ["up", "down", "both"])
def test_the_loss_is_that_of_the_equations(direction: str) -> None:
    narrow, wide = bert(4, 12, 9), bert(8, 20, 30)
    # tokens 0, 2, 3 of the student are 5, 7, 1 of its teacher's
    ids = torch.tensor([5, -1, 7, 1, -1, -1, -1, -1])
    part = ProjectedWeights(direction=direction)  # type: ignore[arg-type]
    companions = part.companions(Teaching(narrow, wide, ids))
    module = part.build(narrow.config, wide.config)
    assert module is not None
    step = TrainingStep({Field.INPUT_IDS: torch.zeros(2, 3)}, {}, narrow, lambda *_: {}, modules={part.name: module})
    step.companions = companions
    loss = part.loss(step)["projected_weights"]
    expected, by_name = 0.0, dict(module.named_parameters())
    for number, way in enumerate(one for one in ("up", "down") if direction in (one, "both")):
        hidden, inner = (by_name[f"{number}.matrices.{name}"].detach().double() for name in ("4_of_8", "12_of_20"))
        total, count = 0.0, 0
        for name, own in narrow.base_model.named_parameters():
            other = wide.base_model.get_parameter(name)
            if name == "embeddings.word_embeddings.weight":
                own, other = own[[0, 2, 3]], other[[5, 7, 1]]
            source, target = (own, other) if way == "up" else (other, own)
            # y = left · x · rightᵀ, by hand for each shape of a BERT
            left = {4: hidden, 8: hidden, 12: inner, 20: inner}.get(
                source.shape[0], torch.eye(source.shape[0]).double()
            )
            mapped = left @ source
            if source.ndim == 2:
                mapped = mapped @ (inner if source.shape[1] in (12, 20) else hidden).T
            total += float((mapped - target).square().sum().detach())
            count += target.numel()
        expected += total / count
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-5)
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(one.grad is not None and one.grad.abs().sum() > 0 for one in module.parameters())
    query = narrow.base_model.encoder.layer[1].attention.self.query.weight
    assert query.grad is not None and query.grad.abs().sum() > 0
    assert all(one.grad is None for one in wide.parameters())


def test_a_student_whose_weights_cannot_be_projected_is_refused() -> None:
    part = ProjectedWeights()
    reason = part.unfit(NetworkShape(2, 4, 2), NetworkShape(4, 8, 2))
    assert reason is not None and "the student has 2 layers and its teacher 4" in reason
    assert part.unfit(NetworkShape(2, 4, 2), NetworkShape(2, 8, 2)) is None
    with pytest.raises(RecipeError, match="student and teacher have other weights, such as encoder.layer.2"):
        part.companions(Teaching(bert(4, 12, 9), bert(8, 20, 9, layers=3), None))
    with pytest.raises(
        RecipeError, match=r"word_embeddings.weight has the shape \(9, 4\) in the student and \(30, 8\)"
    ):
        part.companions(Teaching(bert(4, 12, 9), bert(8, 20, 30), None))
