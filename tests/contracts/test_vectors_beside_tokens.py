"""A system that reads a vector beside each token is new files only: an annotation, an embedding and a corruption of its
channel, and a task family whose examples bring the vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contracts.added_parts import STAGES, outcome_with
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of

ANNOTATION = '''\
from __future__ import annotations

import numpy as np

from pipelines.parts.annotations import Annotation
from pipelines.vocabulary import Channel

CHANNEL = Channel("sounds", size=None, shape=(4,), edges=(0, 0))


class Sounds(Annotation, name="sounds"):
    """How each word sounds: a vector, for words that were heard."""

    paper = "arXiv:1910.11559"
    makes = CHANNEL.name

    @property
    def channels(self):
        return (CHANNEL,)

    @property
    def columns(self):
        return {"tokens": "list<string>", "heard": "list<list<double>>"}

    def annotate(self, text):
        heard = np.asarray([one or [0.0] * 4 for one in text.value("heard")], dtype=np.float32).reshape(-1, 4)
        return {CHANNEL.name: heard[text.word_indices("tokens")]}
'''
EMBEDDING = '''\
from __future__ import annotations

from pipelines.parts.embeddings import ProjectedEmbedding


class SoundEmbedding(ProjectedEmbedding, name="sounds"):
    """The projection of how a word sounds."""

    paper = "arXiv:1910.11559"
    channel = "sounds"
    size: int = 4
'''
CORRUPTION = '''\
from __future__ import annotations

from pipelines.parts.corruptions import Corruption
from pipelines.vocabulary import Field

SOUNDS = Field.of_channel("sounds")


class SoundMask(Corruption, name="sound_mask"):
    """A masked token is not heard."""

    paper = "arXiv:1910.11559"
    needs = frozenset({Field.MASKED_POSITIONS, SOUNDS})
    provides = frozenset()

    def apply(self, batch, tokens, random):
        sounds = batch[SOUNDS].copy()
        sounds.reshape(-1, sounds.shape[-1])[batch[Field.MASKED_POSITIONS]] = 0
        return {**batch, SOUNDS: sounds}
'''
FAMILY = '''\
from __future__ import annotations

from typing import ClassVar

from pipelines.task_families.text_classification import TextClassification


class SpokenClassification(TextClassification, name="spoken_classification"):
    """One label for a text whose words were heard."""

    paper: ClassVar[str] = "arXiv:1910.11559"
    columns: ClassVar[dict[str, str]] = {
        "text": "string", "tokens": "list<string>", "heard": "list<list<double>>", "label": "string",
    }
    is_single_text: ClassVar[bool] = False

    def problem(self, row):
        return None
'''
HEAD = '''\
from __future__ import annotations

from pipelines.parts.heads.sequence_classification import SequenceClassificationHead


class SpokenClassificationHead(SequenceClassificationHead, name="spoken_classification"):
    """Class scores of a text whose words were heard."""

    paper = "arXiv:1910.11559"
    reads = frozenset({"spoken_classification"})
'''
FILES = {
    "parts/annotations/sounds.py": ANNOTATION,
    "parts/embeddings/sounds.py": EMBEDDING,
    "parts/corruptions/sound_mask.py": CORRUPTION,
    "task_families/spoken_classification.py": FAMILY,
    "parts/heads/spoken_classification.py": HEAD,
}
LISTEN = """\
  listen:
    kind: finetune
    start: general
    corpus: task
    head: spoken_classification
    objective: cross_entropy
    strategy: full
    optimizer: {lr: 1.0e-2, precision: 32-true}
    budget: {epochs: 12, batch_texts: 8, length: 32}
"""
RECIPE = recipe_of(
    "small",
    "arXiv:1910.11559",
    masked_lm_stage(tokens=10240, corruption="[{name: token_mask, rate: 0.2}, sound_mask]", channel="sounds", width=16),
    LISTEN,
)
BEFORE = """
import random
import pyarrow, pyarrow.parquet
from pipelines.recipe.plan import plan as planned
from pipelines.task_families import TaskFamily
SOUND = {"high": [1.0, -1.0, 0.5, 0.0], "low": [-1.0, 1.0, 0.0, 0.5]}
def row(text, number, label):
    words = text.split()[:20]
    # only the sound of two words tells the label
    heard = [SOUND[label] if at in (1, number % 5) else [] for at in range(len(words))]
    return {"text": " ".join(words), "tokens": words, "heard": heard, "label": label, "source": "made"}
texts = [text for text in pyarrow.parquet.read_table(tables["general"])["text"].to_pylist()
         if text.isascii() and len(text.split()) > 5]
drawn = random.Random(0)
for name, size in (("general", len(texts)), ("train", 96), ("validation", 40), ("test", 40)):
    drawn.shuffle(texts)
    rows = [row(text, number, ("high", "low")[number % 2]) for number, text in enumerate((texts * 9)[:size])]
    if name == "general":
        rows = [{key: one[key] for key in ("text", "tokens", "heard")} for one in rows]
    tables[name] = folder / f"{name}.parquet"
    schema = pyarrow.schema([
        ("text", pyarrow.string()), ("tokens", pyarrow.list_(pyarrow.string())),
        ("heard", pyarrow.list_(pyarrow.list_(pyarrow.float64()))),
        *([] if name == "general" else [("label", pyarrow.string()), ("source", pyarrow.string())]),
    ])
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema), tables[name])
sources = {name: DataSource(digest=name, path=str(path)) for name, path in tables.items()}
def plan_of(library, name, sources):
    return planned(library.load(name), library, sources, TaskFamily.model_validate("spoken_classification"))
"""
AFTER = """
from pipelines.errors import DataError
from pipelines.serving.answering.answerer import Answerer
from pipelines.training.batches import stored_examples
general, listen = resumed("general"), resumed("listen")
before = weights("listen")
stored_examples.AT_ONCE = 16
run(job("listen", folder / "stored"))
mapped = load_file(folder / "stored" / "model.safetensors")
answerer = Answerer(folder / "listen")
words = "what was heard here".split()
def example(sound, **changes):
    return {"text": " ".join(words), "tokens": words, "heard": [[], SOUND[sound], SOUND[sound], []], **changes}
def refusal(**changes):
    try:
        answerer.answer([example("low", **changes)])
    except DataError as error:
        return str(error)
name = "bert.embeddings.word_embeddings.channels.sounds.projection.weight"
print(json.dumps({
    "general": general,
    "listen": listen,
    "stored": all(torch.equal(value, mapped[key]) for key, value in before.items()),
    "shape": list(before[name].shape),
    "moved": float((weights("general")[name] - before[name]).abs().max()),
    "score": max(line["validation/macro_f1"] for line in read_metrics(folder / "listen" / METRICS)
                 if "validation/macro_f1" in line),
    "answers": answerer.answer([example("low"), example("high")]),
    "refusals": [refusal(heard=None), refusal(heard=[[], [1e999, 0.0, 0.0, 0.0], [], []])],
}))
"""


@pytest.fixture(scope="module")
def outcome(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    prepared, trained = STAGES.split("plan = plan_of", 1)
    script = f"{prepared}{BEFORE}plan = plan_of{trained}{AFTER}"
    result: dict[str, Any] = outcome_with(tmp_path_factory.mktemp("sounds"), FILES, RECIPE, tables, script)
    return result


def test_what_only_the_vectors_tell_is_learned_and_served(outcome: dict[str, Any]) -> None:
    assert outcome["shape"] == [16, 4] and outcome["moved"] > 1e-3
    assert outcome["score"] > 0.9, "the texts say nothing about the label"
    assert outcome["answers"] == ["low", "high"]


def test_interrupted_stages_end_with_the_same_weights(outcome: dict[str, Any]) -> None:
    assert outcome["general"] == [5, True] and outcome["listen"] == [5, True]


def test_vectors_of_examples_in_files_are_those_in_memory(outcome: dict[str, Any]) -> None:
    assert outcome["stored"]


def test_examples_without_finite_vectors_are_refused(outcome: dict[str, Any]) -> None:
    missing, infinite = outcome["refusals"]
    assert "heard" in missing and "sounds" in infinite and "no finite number" in infinite
