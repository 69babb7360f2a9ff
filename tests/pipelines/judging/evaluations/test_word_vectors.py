"""Neighbours, analogies and judgements, against planted vectors and brute force."""

from __future__ import annotations

import gzip
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.judging.evaluations.answered_analogies import AnsweredAnalogiesEvaluation
from pipelines.judging.evaluations.word_vectors import (
    EmbeddingTable,
    WordVectorsEvaluation,
    answer_analogies,
    read_analogies,
    read_similarity,
)
from pipelines.networks.word_vectors import WordVectorsConfig, WordVectorsModel
from tests.steps import ROOT

WORDS = ("<pad>", "<unk>", "man", "woman", "king", "queen", "uncle", "aunt", "apple", "pear")
PLANTED = {
    "man": (1, 0, 0, 0.1),
    "woman": (1, 1, 0, 0.1),
    "king": (1, 0, 1, 0.2),
    "queen": (1, 1, 1, 0.2),
    "uncle": (1, 0, 0, -1),
    "aunt": (1, 1, 0, -1),
    "apple": (-1, 0.1, 0.3, 0),
    "pear": (-1, 0.2, 0.3, 0),
    # a special token in the best place of all must not be an answer
    "<unk>": (1, 1, 1, 0.2),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vectors")
    fast = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=fast, pad_token="<pad>", unk_token="<unk>").save_pretrained(path)
    network = WordVectorsModel(WordVectorsConfig(vocab_size=16, hidden_size=4, token_counts=[0, 0, *range(80, 0, -10)]))
    with torch.no_grad():
        network.embeddings.weight.normal_()
        for word, vector in PLANTED.items():
            network.embeddings.weight[WORDS.index(word)] = 3 * torch.tensor(vector)
    network.save_pretrained(path)
    return path


def test_neighbours_are_the_words_of_the_highest_cosine(folder: Path) -> None:
    record = WordVectorsEvaluation(words=("apple", "melon"), neighbours=3).measure_folder(folder)
    unit = {word: np.asarray(v) / np.linalg.norm(v) for word, v in PLANTED.items() if word != "<unk>"}
    cosine = {word: float(unit["apple"] @ vector) for word, vector in unit.items() if word != "apple"}
    expected = sorted(cosine, key=lambda word: -cosine[word])[:3]
    assert [word for word, _ in record["neighbours"]["apple"]] == expected
    assert record["neighbours"]["apple"][0] == ("pear", pytest.approx(cosine["pear"], abs=1e-4))
    assert record["neighbours"]["melon"] is None, "a word that the model does not know"
    assert (record["width"], record["words"]) == (4, 8)
    assert list(WordVectorsEvaluation().measure_folder(folder)["neighbours"]) == ["man"], (
        "the most frequent of a small vocabulary"
    )


def test_analogies_are_answered_by_3cosadd_and_coverage_is_told(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    royal = "man woman king queen\nman king woman queen"
    family = "man woman uncle aunt\nman woman king aunt\nman woman melon queen"
    path.write_text(f": royal\n{royal}\n: family\n{family}\n")
    questions = read_analogies(path)
    assert questions[0] == ("royal", "man", "woman", "king", "queen") and questions[4][0] == "family"
    record = answer_analogies(EmbeddingTable(folder), questions)
    assert record["coverage"] == 0.8 and record["accuracy"] == 0.75 and record["accuracy_of_all"] == 0.6
    assert record["relations"] == {"family": {"right": 1, "questions": 2}, "royal": {"right": 2, "questions": 2}}
    # Wilson's interval of 3 in 4
    z, p, n = 1.959964, 0.75, 4
    center, half = (p + z**2 / 2 / n) / (1 + z**2 / n), z * np.sqrt(p * (1 - p) / n + (z / n / 2) ** 2) / (1 + z**2 / n)
    assert (record["low"], record["high"]) == (
        pytest.approx(center - half, abs=1e-4),
        pytest.approx(center + half, abs=1e-4),
    )


def test_a_claim_compares_models_on_the_same_questions(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "questions.tsv"
    path.write_text("royal\tman\twoman\tking\tqueen\nroyal\tman\twoman\tking\taunt\nfood\tman\tmelon\tking\tpear\n")
    kept: dict[str, np.ndarray] = {}
    subject = SimpleNamespace(stage="vectors", seed=0, folder=folder)
    context: Any = SimpleNamespace(
        language_models={"vectors": [subject]}, seed=0, keep=lambda name, _, rows: kept.update({name: rows})
    )
    record = AnsweredAnalogiesEvaluation(file=str(path)).measure(context)
    assert kept["answered_analogies"].tolist() == [[1, 1], [0, 1], [0, 1]], "an unknown word is a wrong answer"
    (figure,) = AnsweredAnalogiesEvaluation.figures(cast("Any", None))
    assert figure.score(kept["answered_analogies"]) == pytest.approx(1 / 3) and not figure.lower
    (stage,) = record["stages"]
    assert stage["coverage"] == round(2 / 3, 4) and stage["relations"] == {"royal": 0.5, "food": 0.0}


def test_the_shipped_questions_are_read() -> None:
    questions = read_analogies(ROOT / "recipes/knowledge/analogies.tsv")
    assert len(questions) == len(set(questions)) == 462
    assert all(len({a, b, c, d}) == 4 for _, a, b, c, d in questions), "a word that is given is no answer"


def test_every_answer_is_the_one_found_by_trying_every_word(folder: Path) -> None:
    known = [word for word in PLANTED if word != "<unk>"]
    unit = {word: np.asarray(PLANTED[word]) / np.linalg.norm(PLANTED[word]) for word in known}
    table = EmbeddingTable(folder)
    for a, b, c in permutations(known, 3):
        target = unit[b] - unit[a] + unit[c]
        best = max((word for word in known if word not in (a, b, c)), key=lambda word: float(unit[word] @ target))
        assert answer_analogies(table, [("", a, b, c, best)])["accuracy"] == 1, (a, b, c)


def test_judgements_are_compared_by_spearman(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv.gz"
    pairs = [
        ("man", "woman", 8.0),
        ("king", "queen", 7.5),
        ("apple", "pear", 9.0),
        ("man", "pear", 1.0),
        ("aunt", "apple", 0.5),
    ]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("first\tsecond\tscore\n" + "".join(f"{a}\t{b}\t{s}\n" for a, b, s in pairs) + "man\tmelon\t3\n")
    assert read_similarity(path) == [*pairs, ("man", "melon", 3.0)]
    record = WordVectorsEvaluation(similarity=str(path)).measure_folder(folder)["similarity"]
    unit = {word: np.asarray(v) / np.linalg.norm(v) for word, v in PLANTED.items()}
    expected = spearmanr([float(unit[a] @ unit[b]) for a, b, _ in pairs], [s for *_, s in pairs]).statistic
    assert record["spearman"] == pytest.approx(expected, abs=1e-4) and record["coverage"] == pytest.approx(
        5 / 6, abs=1e-4
    )
    assert -1 <= record["low"] < record["spearman"] < record["high"] <= 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [("a b c\n", "line 1: 3 fields"), ("a\tb\tc\td\ne\n", "line 2: 1 fields"), ("\n", "empty"), (None, "no such file")],
)
def test_a_bad_file_of_questions_is_named(text: str | None, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError, match=problem):
        read_analogies(path)


def test_a_bad_judgement_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("man\twoman\t3\nman\tking\n")
    with pytest.raises(DataError, match="line 2: expected word, word, score"):
        read_similarity(path)
