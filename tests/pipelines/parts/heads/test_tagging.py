"""Tags of words: encoding, softmax and chains, against Hugging Face and by enumeration."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import BertForTokenClassification, PreTrainedTokenizerFast

from pipelines.components import discover
from pipelines.errors import DataError, RecipeError
from pipelines.networks.crf import best_chains, chain_score, log_partition
from pipelines.parts.heads.crf_tagging import CrfTaggingHead
from pipelines.parts.heads.tagging import TaggingHead
from pipelines.parts.objectives.crf import Crf
from pipelines.parts.objectives.tag_cross_entropy import TagCrossEntropy
from pipelines.parts.tokenizers import Tokenizer as TokenizerFamily
from pipelines.task_families.tagging import Tagging as TaggingFamily
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.heads.small_parts import BODIES, loss_of, small_network, task_of, tensors
from tests.small_corpus import documents

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
TASK = task_of("tagging", *TAGS)
SENTENCES = [
    {"tokens": ["Ada", "Lovelace", "lived", "in", "London", "."], "tags": ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]},
    {"tokens": ["鲁", "迅", "在", "北", "京", "写", "作"], "tags": ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O", "O"]},
    {"tokens": ["unbelievably", "argument-parsing"], "tags": ["O", "B-LOC"]},
]
EVERY = np.arange(3)


def random_chain(words: int, tags: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    emissions = torch.randn(words, tags, dtype=torch.float64)
    return emissions, torch.randn(tags + 2, tags + 2, dtype=torch.float64)


def scores_by_enumeration(emissions: torch.Tensor, transitions: torch.Tensor) -> dict[tuple[int, ...], float]:
    words, tags = emissions.shape
    scores = {}
    for chain in product(range(tags), repeat=words):
        path = [tags, *chain, tags + 1]
        moved = sum(float(transitions[a, b]) for a, b in pairwise(path))
        scores[chain] = moved + sum(float(emissions[word, tag]) for word, tag in enumerate(chain))
    return scores


@pytest.mark.parametrize(("words", "tags"), [(1, 3), (2, 4), (5, 3), (0, 3)])
def test_a_chain_is_scored_summed_and_found_as_by_enumeration(words: int, tags: int) -> None:
    emissions, transitions = random_chain(words, tags)
    scores = scores_by_enumeration(emissions, transitions)
    # beside a longer row, so that its padding is tried too; whatever stands there
    rows = torch.full((2, words + 2, tags), 7.0, dtype=torch.float64)
    rows[0, :words] = emissions
    lengths = torch.tensor([words, words + 2])
    total = log_partition(rows, transitions, lengths)[0]
    assert float(total) == pytest.approx(np.logaddexp.reduce(list(scores.values())), abs=1e-10)
    best = max(scores, key=lambda chain: scores[chain])
    assert best_chains(rows, transitions, lengths)[0] == list(best)
    for chain, score in list(scores.items())[:20]:
        labels = torch.tensor([[*chain, 1, 2], [0] * (words + 2)])
        assert float(chain_score(rows, transitions, labels, lengths)[0]) == pytest.approx(score, abs=1e-10)


def test_the_gradient_is_expected_minus_observed_counts() -> None:
    emissions, transitions = (x.requires_grad_() for x in random_chain(4, 3, seed=1))
    gold = (2, 0, 0, 1)
    labels = torch.full((1, 9), -100)
    labels[0, [1, 3, 4, 7]] = torch.tensor(gold)
    row = torch.zeros(1, 9, 3, dtype=torch.float64).index_put((torch.tensor(0), torch.tensor([1, 3, 4, 7])), emissions)
    signals = {Signal.TAG_LOGITS: row, Signal.TAG_TRANSITIONS: transitions}
    loss = loss_of(Crf(), {Field.TAG_LABELS: labels}, signals)
    spoken, moved = torch.autograd.grad(loss * 4, [emissions, transitions])
    scores = scores_by_enumeration(emissions.detach(), transitions.detach())
    total = np.logaddexp.reduce(list(scores.values()))
    assert float(loss.detach()) == pytest.approx((total - scores[gold]) / 4, abs=1e-10)
    expected_spoken, expected_moved = np.zeros((4, 3)), np.zeros((5, 5))
    for chain, weight in [*((c, np.exp(s - total)) for c, s in scores.items()), (gold, -1.0)]:
        for word, tag in enumerate(chain):
            expected_spoken[word, tag] += weight
        for a, b in zip((3, *chain), (*chain, 4), strict=True):
            expected_moved[a, b] += weight
    np.testing.assert_allclose(spoken, expected_spoken, atol=1e-10)
    np.testing.assert_allclose(moved, expected_moved, atol=1e-10)


def test_without_transitions_a_chain_is_its_words_by_themselves() -> None:
    logits, labels = torch.randn(2, 7, 4, dtype=torch.float64), torch.full((2, 7), -100)
    labels[0, 1:4], labels[1, [1, 2, 5, 6]] = torch.tensor([3, 0, 1]), torch.tensor([1, 1, 2, 0])
    batch, zeros = {Field.TAG_LABELS: labels}, torch.zeros(6, 6, dtype=torch.float64)
    chain = loss_of(Crf(), batch, {Signal.TAG_LOGITS: logits, Signal.TAG_TRANSITIONS: zeros})
    alone = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    torch.testing.assert_close(chain, alone, atol=1e-10, rtol=0)
    torch.testing.assert_close(loss_of(TagCrossEntropy(), batch, {Signal.TAG_LOGITS: logits}).double(), alone)
    nothing = {Field.TAG_LABELS: torch.full((2, 7), -100)}
    assert loss_of(TagCrossEntropy(), nothing, {Signal.TAG_LOGITS: logits}) == 0
    assert loss_of(Crf(), nothing, {Signal.TAG_LOGITS: logits, Signal.TAG_TRANSITIONS: zeros}) == 0


def test_the_loss_of_a_tagger_is_hugging_faces_own(tokenizer: PreTrainedTokenizerFast) -> None:
    head = TaggingHead()
    network = small_network(head, TASK, tokenizer)
    batch = tensors(head.encode(SENTENCES, TASK, tokenizer, 32), EVERY)
    theirs = BertForTokenClassification(network.config).eval()
    theirs.load_state_dict(network.state_dict(), strict=True)
    inputs = {str(name): value for name, value in batch.items() if name != Field.TAG_LABELS}
    expected = theirs(**inputs, labels=batch[Field.TAG_LABELS]).loss
    ours = loss_of(TagCrossEntropy(), batch, head.signals(network, batch, frozenset()))
    torch.testing.assert_close(ours, expected, atol=1e-6, rtol=0)


def byte_level(prefix: bool) -> PreTrainedTokenizerFast:
    """A byte-level BPE without a frame, as GPT-2's."""
    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer, fast.decoder = pre_tokenizers.ByteLevel(add_prefix_space=prefix), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    fast.train_from_iterator(documents("logging", "email"), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=fast, pad_token="<pad>")


@pytest.mark.parametrize("prefix", [False, True])
def test_words_are_tokenized_as_they_are_written(prefix: bool, tokenizer: PreTrainedTokenizerFast) -> None:
    for kind in (tokenizer, byte_level(prefix)):
        for text in ("the message is sent to the server", "鲁迅在北京写作"):
            words = text.split() if " " in text else list(text)
            encoded = TaggingHead().encode([{"tokens": words}], TASK, kind, 64, answers=False)
            ids = encoded.collate(np.array([0]))[Field.INPUT_IDS][0, : encoded.lengths[0]]
            if " " in text or kind is tokenizer:
                assert ids.tolist() == kind(text)["input_ids"]
            elif not prefix:  # characters are words here: nothing joins two of them to one token
                assert kind.decode(ids).strip() == text


def test_every_kind_of_tokenizer_keeps_its_own_tokens() -> None:
    discover(TokenizerFamily.__module__)
    text = "the message is sent to the server"
    for name in TokenizerFamily.members:
        kind = TokenizerFamily.model_validate(name).tiny().train(documents("logging", "email", "argparse"))
        encoded = TaggingHead().encode([{"tokens": text.split()}], TASK, kind, 64, answers=False)
        ids = encoded.collate(np.array([0]))[Field.INPUT_IDS][0, : encoded.lengths[0]]
        assert ids.tolist() == kind(text)["input_ids"], name


def test_a_tag_stands_at_the_first_token_of_its_word(tokenizer: PreTrainedTokenizerFast) -> None:
    encoded = TaggingHead().encode(SENTENCES, TASK, tokenizer, 32)
    batch = encoded.collate(EVERY)
    for item, sentence in enumerate(SENTENCES):
        places = np.flatnonzero(batch[Field.TAG_LABELS][item] != -100)
        assert [TAGS[tag] for tag in batch[Field.TAG_LABELS][item, places]] == sentence["tags"]
        for place, word in zip(places, sentence["tokens"], strict=True):
            token = tokenizer.convert_ids_to_tokens(int(batch[Field.INPUT_IDS][item, place]))
            assert not token.startswith("##") and (token == "[UNK]" or word.lower().startswith(token))


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("head", [TaggingHead(), CrfTaggingHead(), CrfTaggingHead(legal_only=True)], ids=repr)
@torch.no_grad()
def test_answers_cover_every_word(head: TaggingHead, body: str, tokenizer: PreTrainedTokenizerFast) -> None:
    network = small_network(head, TASK, tokenizer, body)
    long = {"tokens": ["word"] * 40, "tags": ["B-LOC"] * 40}
    odd = {"tokens": ["\u200b", "Ada"], "tags": ["B-MISC", "B-PER"]}
    rows = [*SENTENCES, long, odd]
    encoded = head.encode(rows, TASK, tokenizer, 16)
    heard = []
    for chosen in (np.array([4, 1]), np.array([2, 0, 3])):
        batch = tensors(encoded, chosen)
        heard.append((chosen, batch, head.signals(network, batch, head.answers_from)))
    answers = head.answer(network, encoded, heard, TASK, tokenizer)
    assert [len(answer) for answer in answers] == [len(row["tokens"]) for row in rows]
    assert answers[3][14:] == ["O"] * 26 and answers[4][0] == "O"
    assert encoded.uncovered >= 27  # type: ignore[attr-defined]
    if getattr(head, "legal_only", False):
        family = TaggingFamily()
        statistics = family.statistics([row["tags"] for row in rows], answers, TAGS)
        assert family.scores(statistics)["legal"] == 1


@torch.no_grad()
def test_a_ruled_out_transition_is_never_taken(tokenizer: PreTrainedTokenizerFast) -> None:
    free, legal = CrfTaggingHead(), CrfTaggingHead(legal_only=True)
    network = small_network(free, TASK, tokenizer)
    network.classifier.bias[2] = 9.0  # I-PER everywhere
    encoded = free.encode(SENTENCES, TASK, tokenizer, 32)
    batch = tensors(encoded, EVERY)
    for head, first in ((free, "I-PER"), (legal, "B-PER")):
        signals = head.signals(network, batch, frozenset())
        answers = head.answer(network, encoded, [(EVERY, batch, signals)], TASK, tokenizer)
        assert {answer[0] for answer in answers} == {first} and {tag for a in answers for tag in a[1:]} == {"I-PER"}
        assert loss_of(Crf(), batch, signals).isfinite()


def test_mistakes_are_told(tokenizer: PreTrainedTokenizerFast) -> None:
    head = TaggingHead()
    with pytest.raises(DataError, match="example 1: the column 'tokens' is empty"):
        head.encode([SENTENCES[0], {"tokens": [], "tags": []}], TASK, tokenizer, 32)
    with pytest.raises(DataError, match="example 0: its column 'tags' holds 1 tags for 6 tokens"):
        head.encode([{**SENTENCES[0], "tags": ["O"]}], TASK, tokenizer, 32)
    with pytest.raises(RecipeError, match=r"budget\.length: 2 tokens have no room besides 2 special tokens"):
        head.encode(SENTENCES, TASK, tokenizer, 2)
