"""`cursus neighbours`: words by their vectors, occurrences by their states, and every mistake in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.judging.occurrences import Occurrence, cosines, occurrence_states
from pipelines.models.backbone import open_backbone
from pipelines.networks.word_vectors import WordVectorsConfig, WordVectorsModel
from tasks.models.neighbours import MOST
from tests.tasks.conftest import Builder

SENTENCES = [
    "Solve a linear system. Draw samples from a distribution.",
    "The linear system has a solution! Assign points to centroids.",
    "A system of points.\nNo such word here.",
    "solve a LINEAR system.",
    "systematic samples",
]


@pytest.fixture
def named(root: Path, classifier_folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The fingerprint of a model whose lineage has plain text."""
    monkeypatch.setenv("CURSUS_ROOT", str(root))
    builder = Builder(root, classifier_folder)
    return builder.step("general", "pretrain", data={"general": builder.table("general", SENTENCES)}).fingerprint


def said(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["neighbours", *words])
    return done.exit_code, done.output


def test_sentences_of_the_lineage_are_ordered_by_the_states_of_the_word(named: str, classifier_folder: Path) -> None:
    asked = "Solve a linear system."
    done = CliRunner().invoke(app, ["neighbours", "system", "--in", asked, "--model", named, "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    texts = [one["text"] for one in answer["neighbours"]]
    # each sentence once, whatever its case, without the one that was asked, and only whole words
    assert sorted(texts) == ["A system of points.", "The linear system has a solution!"]
    assert answer["compared"] == 2 and answer["contextual"] is True and "lineage (general)" in answer["source"]
    assert all(one["text"][one["start"] : one["end"]] == "system" for one in answer["neighbours"])
    every = [Occurrence("system", text, text.index("system"), text.index("system") + 6) for text in [asked, *texts]]
    states = occurrence_states(*open_backbone(classifier_folder), every)[-1]
    expected = cosines(states[:1], states[1:])[0]
    np.testing.assert_allclose([one["cosine"] for one in answer["neighbours"]], expected, atol=1e-4)
    assert expected[0] >= expected[1]


def test_texts_of_ones_own_and_a_layer_are_used(named: str, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("One system here.\nAnother system there.\n", encoding="utf-8")
    options = ["system", "--in", "A system.", "--model", named, "--texts", str(texts)]
    code, output = said(*options, "--top", "1", "--layer", "1")
    assert code == 0 and "of 2 sentences with the word, of" in output, output
    code, output = said(*options, "--layer", "7")
    assert code == 2 and "--layer 7" in output and "layers 0 (the embeddings) to 2" in output


def test_of_a_large_file_only_the_beginning_is_read(named: str, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    sentences = "".join(f"The system has {number} points.\n" for number in range(MOST))
    texts.write_bytes(sentences.encode() + b"no such word\n" * 100_000 + b"\xff")
    code, output = said("system", "--in", "A system.", "--model", named, "--texts", str(texts), "--top", "1")
    assert code == 0 and f"of {MOST} sentences with the word, of" in output, output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["system", "--in", "systematic"], "--in: the sentence does not contain 'system', as a whole word"),
        (["centroid", "--in", "a centroid"], "no other sentence contains 'centroid'; give texts that do with --texts"),
        (["eigenvalues"], "'eigenvalues' is not one token of"),
        (["system", "--in", "a system", "--texts", "absent.txt"], "absent.txt: cannot be read as text"),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], message: str, named: str) -> None:
    code, output = said(*words, "--model", named)
    assert code == 2 and message in " ".join(output.split()) and "Traceback" not in output


def test_static_vectors_have_nearest_words_and_no_senses(root: Path, tmp_path: Path) -> None:
    words = ("<pad>", "<unk>", "king", "queen", "apple", "the", "a")
    folder, texts = tmp_path / "vectors", tmp_path / "texts.txt"
    fast = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=fast, pad_token="<pad>", unk_token="<unk>").save_pretrained(folder)
    network = WordVectorsModel(WordVectorsConfig(vocab_size=8, hidden_size=3))
    with torch.no_grad():
        network.embeddings.weight.copy_(torch.eye(8, 3) * 0.1)
        for word, vector in {"king": (1, 0, 0), "queen": (1, 0.2, 0), "apple": (0, 0, 1)}.items():
            network.embeddings.weight[words.index(word)] = torch.tensor(vector)
    network.save_pretrained(folder)
    code, output = said("king", "--model", str(folder), "--top", "1")
    assert code == 0 and output.splitlines()[0] == "0.981  queen", output
    texts.write_text("the king\na king\n", encoding="utf-8")
    code, output = said("king", "--in", "king apple", "--model", str(folder), "--texts", str(texts))
    assert code == 0 and "one vector for the word, whatever the sentence" in output, output
    code, output = said("king", "--in", "king apple", "--model", str(folder))
    assert code == 2 and "pass some with --texts FILE" in output
