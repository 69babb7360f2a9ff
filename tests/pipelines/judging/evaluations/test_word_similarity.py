"""Similarity of words and texts against judgements, with planted vectors."""

from __future__ import annotations

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
from pipelines.judging.evaluations.word_similarity import WordSimilarityEvaluation, spearman
from pipelines.networks.word_vectors import WordVectorsConfig, WordVectorsModel
from pipelines.recipe.judging import check_judging
from pipelines.recipe.problems import Setting
from pipelines.recipe.schema import Stage

VECTORS = {"<pad>": (9, 9), "<unk>": (9, 9), "cat": (1, 0), "dog": (1, 0.2), "car": (0, 1), "van": (0.4, 1)}
JUDGED = [("cat", "dog", 9.0), ("car", "van", 8.0), ("cat", "van", 3.0), ("dog", "car", 2.5), ("cat", "car", 1.0)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vectors")
    fast = Tokenizer(models.WordLevel({word: at for at, word in enumerate(VECTORS)}, unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=fast, pad_token="<pad>", unk_token="<unk>").save_pretrained(path)
    network = WordVectorsModel(WordVectorsConfig(vocab_size=len(VECTORS), hidden_size=2))
    with torch.no_grad():
        network.embeddings.weight.copy_(torch.tensor(list(VECTORS.values())))
    network.save_pretrained(path)
    return path


def context(folder: Path, rows: list[dict[str, Any]]) -> Any:
    kept: dict[str, np.ndarray] = {}
    subject = SimpleNamespace(stage="vectors", seed=0, folder=folder)
    return SimpleNamespace(
        language_models={"vectors": [subject]}, rows=rows, seed=0, kept=kept,
        keep=lambda name, model, sample: kept.update({f"{name}/{model.stage}": sample}),
    )  # fmt: skip


def test_cosines_are_ranked_like_judgements(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "judged.tsv"
    path.write_text("one\tother\tscore\n" + "".join(f"{a}\t{b}\t{score}\n" for a, b, score in JUDGED))
    judged = context(folder, [])
    record = WordSimilarityEvaluation(file=str(path)).measure(judged)
    unit = {word: np.asarray(value) / np.linalg.norm(value) for word, value in VECTORS.items()}
    cosines = [float(unit[a] @ unit[b]) for a, b, _ in JUDGED]
    expected = spearmanr(cosines, [score for *_, score in JUDGED]).statistic
    assert record["headline"] == {"word_similarity/vectors": pytest.approx(expected)}
    assert record["stages"][0]["coverage"] == 1.0
    np.testing.assert_allclose(judged.kept["word_similarity/vectors"][:, 0], cosines, atol=1e-6)
    (figure,) = WordSimilarityEvaluation.figures(cast("Any", None))
    assert figure.score(judged.kept["word_similarity/vectors"]) == pytest.approx(expected)


def test_texts_are_the_mean_of_their_words_and_unknown_words_are_none(folder: Path) -> None:
    rows = [{"text_a": a, "text_b": b, "label": score} for a, b, score in JUDGED]
    rows += [{"text_a": "cat dog zebra", "text_b": "dog cat", "label": 10.0}]
    rows += [{"text_a": "zebra", "text_b": "cat", "label": 0.0}]
    judged = context(folder, rows)
    record = WordSimilarityEvaluation().measure(judged)
    sample = judged.kept["word_similarity/vectors"]
    assert sample[-2, 0] == pytest.approx(1.0) and sample[-1, 0] == 0.0
    assert record["pairs"] == 7 and record["stages"][0]["coverage"] == round(6 / 7, 4)


def test_ties_share_a_rank_and_a_constant_has_no_correlation() -> None:
    rows = np.random.default_rng(0).integers(0, 5, (40, 2)).astype(float)
    assert spearman(rows) == pytest.approx(spearmanr(rows[:, 0], rows[:, 1]).statistic)
    rows[:, 0] = 1
    assert spearman(rows) == 0.0


def test_what_cannot_be_ranked_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    rows = [{"text_a": a, "text_b": b, "label": 1.0} for a, b, _ in JUDGED]
    with pytest.raises(DataError, match="the test table: 5 pairs cannot be ranked.*different scores"):
        WordSimilarityEvaluation().measure(context(folder, rows))
    path = tmp_path / "few.tsv"
    path.write_text("cat\tdog\t1\ncat\tcar\t0\n")
    with pytest.raises(DataError, match="few.tsv: 2 pairs cannot be ranked; give at least 4"):
        WordSimilarityEvaluation(file=str(path)).measure(context(folder, rows))


def test_a_task_without_graded_pairs_needs_a_file() -> None:
    vectors = Stage.model_validate({"kind": "pretrain", "corpus": "general", "backbone": "word_vectors"})
    judging = Stage.model_validate({"kind": "evaluate", "start": ["vectors"], "suite": ["word_similarity"]})
    key, message = cast("Any", check_judging(judging, lambda _: vectors, Setting(family="text_classification")))
    assert key == "suite" and "no graded pairs: give a file of word, word, score" in message
    assert check_judging(judging, lambda _: vectors, Setting(family="pair_regression")) is None
