"""Graphs of entities: facts of files, senses of names, names in tokens, and TransE by its gradient."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.networks.entity_graph import name_of, read_graph, senses_of_names
from pipelines.networks.entity_names import BEGINS, CONTINUES, SPECIAL, names_in_tokens, token_roles
from pipelines.networks.mentions import MentionMatcher, entity_table
from pipelines.networks.translation_vectors import MARGIN, RATE, descend, translation_vectors
from pipelines.parts.tokenizers.byte_bpe import ByteBPE
from pipelines.parts.tokenizers.wordpiece import WordPiece

FACTS = [[0, 0, 1], [1, 0, 2], [3, 1, 4], [4, 1, 5]]


def test_a_step_of_transe_follows_the_gradient_of_its_loss() -> None:
    random = np.random.default_rng(3)
    vectors, relations = random.normal(size=(6, 4)), random.normal(size=(2, 4))
    true, false = np.asarray(FACTS), np.asarray([[0, 0, 5], [3, 0, 2], [3, 1, 0], [4, 1, 2]])
    ours = vectors.copy(), relations.copy()
    descend(*ours, true, false)
    entities, links = (torch.tensor(one, requires_grad=True) for one in (vectors, relations))

    def distance(facts: np.ndarray) -> Tensor:
        head, link, tail = torch.tensor(facts).unbind(1)
        return (entities[head] + links[link] - entities[tail]).norm(dim=1)

    terms = (MARGIN + distance(true) - distance(false)).clamp(min=0)
    assert 0 < int((terms > 0).sum()) < len(terms), "a fact that is near enough has no gradient"
    terms.sum().backward()
    for new, old in zip(ours, (entities, links), strict=True):
        assert old.grad is not None
        np.testing.assert_allclose(new, (old - RATE * old.grad).detach().numpy(), atol=1e-12)


def test_vectors_of_entities_say_which_are_related() -> None:
    # two taxonomies of ten, in one relation
    facts = tuple((1 + number, 0, 0) for number in range(9)) + tuple((11 + number, 0, 10) for number in range(9))
    vectors = translation_vectors(facts, 21, 16)
    cosines = vectors @ vectors.T
    np.testing.assert_allclose(cosines.diagonal(), 1, atol=1e-6)
    assert cosines[1:10, 1:10].mean() > cosines[1:10, 11:20].mean() + 0.3
    assert np.array_equal(vectors, translation_vectors.__wrapped__(facts, 21, 16)), "the same on every call"


def test_the_table_of_entities_has_a_row_for_none_and_one_for_each() -> None:
    table = entity_table(FACTS, 6, 8)
    assert not table[0].any() and torch.allclose(table[1:].norm(dim=1), torch.ones(6))
    with torch.device("meta"):
        assert entity_table(FACTS, 6, 8).device.type == "meta"
    assert entity_table([], 0, 8).shape == (1, 8)


@pytest.mark.parametrize(
    ("facts", "entities", "message"),
    [
        (FACTS, 7, "facts: the 7 entities of num_entities are not those"),
        (FACTS, 10**15, "facts: the 1,000,000,000,000,000 entities of num_entities are not those"),
        (FACTS, 5, "facts: the 5 entities"),
        ([[0, 10**12, 1]], 2, "facts: 1 facts have relations from 0 to 0 at most"),
        ([[0, 0]], 1, "not enough values to unpack"),
    ],
)
def test_a_configuration_of_another_origin_makes_no_other_table(
    facts: list[list[int]], entities: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        entity_table(facts, entities, 4)


GRAPH = """# a remark
Kernel (statistics)\tbelongs to\tstatistics
kernel (statistics)\tis a kind of\tfunction
kernel (linear algebra)\tbelongs to\tlinear algebra

bus\tvehicle
the\tfunction word
function word\tword
"""


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    path = tmp_path / "graph.tsv"
    path.write_text(GRAPH, encoding="utf-8")
    return path


def test_a_graph_has_the_facts_of_its_files_and_names_have_senses(graph_file: Path) -> None:
    graph = read_graph((graph_file, graph_file))
    assert graph.relations == ("belongs to", "is a kind of")
    assert len(graph.facts) == 6 and graph.entities[:2] == ("kernel (statistics)", "statistics")
    assert name_of("kernel (linear algebra)") == "kernel"
    senses = senses_of_names(graph, ("s", "es"), ("function word",))
    named = {name: {graph.entities[one]: share for one, share in of_name.items()} for name, of_name in senses.items()}
    assert named["kernel"] == named["kernels"] == {
        "kernel (statistics)": pytest.approx(2 / 3), "kernel (linear algebra)": pytest.approx(1 / 3)
    }  # fmt: skip
    assert named["buses"] == {"bus": 1.0} and "the" not in named and named["word"] == {"word": 1.0}


@pytest.mark.parametrize("part", [WordPiece(vocab_size=200), ByteBPE(vocab_size=512)])
def test_names_in_tokens_are_found_in_text(part: WordPiece | ByteBPE, graph_file: Path) -> None:
    texts = ["the kernel of a matrix and kernels of statistics", "kernelized methods, a bus. linear algebra"] * 40
    tokenizer: PreTrainedTokenizerFast = part.train(texts)
    senses = senses_of_names(read_graph((graph_file,)), ("s",))
    names = names_in_tokens(senses, tokenizer)
    matcher = MentionMatcher([[*one] for one in names], token_roles(tokenizer))

    def found(text: str) -> set[str]:
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        _, covers = matcher(ids)
        return {tokenizer.decode(ids[0][one]).strip() for one in covers[0].T if one.any()}

    assert found("kernels of a bus") == {"kernels", "bus"}
    assert found("kernelized linear algebra") == {"linear algebra"}
    assert found("kernel") == {"kernel"}


def roles(*tokens: str) -> list[int]:
    """What `tokens` do in a vocabulary of them."""
    vocabulary = {token: at for at, token in enumerate(("<unk>", *tokens))}
    fast = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    return token_roles(PreTrainedTokenizerFast(tokenizer_object=fast, unk_token="<unk>"))[1:]


def as_bytes(text: str) -> str:
    """`text` as a byte-level tokenizer writes it."""
    ((written, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    return str(written)


def test_letters_beyond_ascii_continue_words_of_scripts_with_spaces() -> None:
    accented, han = as_bytes("é"), as_bytes("人")
    assert len(accented) == 2 and len(han) == 3
    letters = [accented, accented[:1], accented[1:], as_bytes("ж"), as_bytes("ж")[:1], han[1:], "s", "5"]
    others = [as_bytes("—"), as_bytes("—")[:1], han, han[:2], han[:1], as_bytes(" é"), "."]
    assert roles("Ġcaf", *letters) == [BEGINS, *[CONTINUES] * len(letters)]
    assert roles("Ġcaf", *others) == [BEGINS] * (1 + len(others))
    assert roles("▁caf", "é", "ж", "\u0301", "s", "5") == [BEGINS, *[CONTINUES] * 5]
    assert roles("▁caf", "人", "カ", "ไ", "—", ".") == [BEGINS] * 6
    assert roles("caf", "##é", "é", "s") == [BEGINS, CONTINUES, BEGINS, BEGINS], "without marks of spaces"


def test_a_name_is_no_part_of_a_longer_word_with_an_accent() -> None:
    known = [SPECIAL, *roles("Ġcaf", as_bytes("é"), as_bytes("—"))]
    found, _ = MentionMatcher([[1]], known)(torch.tensor([[1, 2], [1, 3]]))
    assert found.tolist() == [[0], [1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# facts\none column\n", r"facts.tsv:2: expected subject, predicate and object, or a term and the term that"),
        ("a\tb\tc\td\n", r"facts.tsv:1: expected subject"),
        ("(sense)\tb\n", r"facts.tsv:1: expected subject"),
        ("# facts\n", r"facts.tsv: the graph has no facts"),
    ],
)
def test_a_file_that_is_no_graph_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_graph((path,))
    with pytest.raises(DataError, match="none.tsv: cannot be read as a graph"):
        read_graph((tmp_path / "none.tsv",))
