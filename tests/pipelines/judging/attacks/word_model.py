"""Words in classes, as a stage of `brown_clusters` saves them: here a class is a number of letters."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import torch

from pipelines.models.opening import ModelRecord, build_network
from pipelines.parts.backbones.word_vectors import WordVectorsBackbone
from pipelines.parts.heads.noise_prediction import NoisePredictionHead
from pipelines.parts.tokenizers.words import Words
from tests.small_corpus import documents

CLASSES = 12


def class_of(word: str) -> int:
    """The number of a word's class, from 0."""
    return min(len(word), CLASSES) - 1


@cache
def word_model() -> Path:
    """Folder of the words of two modules' documentation, made once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="word_model"))
    tokenizer = Words(min_count=1).train(documents("logging", "json"))
    network = build_network(
        ModelRecord(head=NoisePredictionHead()), WordVectorsBackbone(hidden_size=CLASSES).config(tokenizer, 64)
    )
    vectors = torch.zeros(len(tokenizer), CLASSES)
    for word, number in tokenizer.get_vocab().items():
        vectors[number, class_of(word)] = 1
    vectors[: len(tokenizer.all_special_tokens)] = 0
    with torch.no_grad():
        network.base_model.get_input_embeddings().weight.copy_(vectors)  # type: ignore[operator, union-attr]
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
