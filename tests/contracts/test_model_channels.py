"""An annotation that reads the network of another stage is new files only: its channel follows from that network's
states of a text, in training, in later stages and in the finished model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contracts.added_parts import STAGES, outcome_with
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of

ANNOTATION = '''\
from __future__ import annotations

from pipelines.parts.annotations import ModelAnnotation
from pipelines.vocabulary import Channel

CHANNEL = Channel("senses_of_states", size=5, edges=(0, 0))


class StateSenses(ModelAnnotation, name="state_senses"):
    """Which of four numbers of its state is the largest, from 1: a clustering of contexts with four axes as centres."""

    paper = "arXiv:1504.06654"
    makes = CHANNEL.name

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (CHANNEL,)

    def annotate(self, text):
        return {CHANNEL.name: 1 + self.model.states(text)[:, :4].argmax(1)}
'''
EMBEDDING = '''\
from __future__ import annotations

from pipelines.parts.embeddings import Embedding


class StateSensesEmbedding(Embedding, name="state_senses"):
    """A vector for each sense."""

    paper = "arXiv:1504.06654"
    channel = "senses_of_states"
    size: int = 5
'''
FILES = {"parts/annotations/state_senses.py": ANNOTATION, "parts/embeddings/state_senses.py": EMBEDDING}
SENSES = (
    masked_lm_stage("senses", tokens=10240, width=16)
    .replace("    backbone:\n", "    annotations: {name: state_senses, from: vectors}\n    backbone:\n")
    .replace("      positions: 64\n", "      positions: 64\n      embeddings: [state_senses]\n")
)
CLASSIFY = """\
  classify:
    kind: finetune
    start: senses
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    strategy: full
    optimizer: {lr: 3.0e-3, precision: 32-true}
    budget: {epochs: 2, batch_texts: 8, length: 48}
  share:
    like: classify
    budget: {epochs: 1}
    lines:
      topic: {}
      again: {head: {name: sequence_classification, pooling: cls}, annotations: {name: state_senses, from: vectors}}
  report: {kind: evaluate, start: classify, corpus: task, suite: scores}
"""
RECIPE = recipe_of("small", "arXiv:1504.06654", masked_lm_stage("vectors", tokens=4096), SENSES, CLASSIFY)
SCRIPT = (
    STAGES
    + """
import shutil
import numpy as np
from pipelines.models.opening import open_model
from pipelines.serving.answering.answerer import Answerer
from pipelines.task_families.tokenized import TokenizedText
from pipelines.training.batches.token_channels import file_of
from pipelines.vocabulary import Channel
begins, same = resumed("senses")
def fingerprints(text, name="small"):
    again = folder / f"{len(list(folder.iterdir()))}"
    again.mkdir()
    return {step.name: step.fingerprint for step in plan_of(library_of(again, small=text), name, sources).steps}
written = (folder / "small.yaml").read_text()
renamed = fingerprints(written.replace("  vectors:", "  first:").replace("from: vectors", "from: first"))
other = fingerprints(written.replace("from: vectors", "from: wide") + WIDE)
# a line of its own, alone
from pipelines.models.extracting import extract_task
extracted = extract_task(folder / "share", "again", folder / "alone")
moved = folder / "elsewhere" / "model"
shutil.copytree(folder / "classify", moved)
text = "Send an email to the list of addresses, and wait for an answer."
before = Answerer(folder / "classify").answer([{"text": text}])
shutil.rmtree(folder / "vectors")
together, alone = (Answerer(one, task=task).answer([{"text": text}])
                   for one, task in ((folder / "share", "again"), (extracted, None)))
after = Answerer(moved).answer([{"text": text}])
model = open_model(moved, "cpu")
(annotation,) = model.record.annotations
backend = model.tokenizer.backend_tokenizer
backend.no_truncation()
encoding = backend.encode(text, add_special_tokens=False)
spans = np.asarray(encoding.offsets)
read = annotation.annotate(TokenizedText({}, text, "text", spans, None, "here"))["senses_of_states"]
# the same vocabulary, so that its tokens are those of the model that is read
with torch.no_grad():
    network = annotation.model.network
    states = network.base_model(torch.tensor([backend.encode(text).ids])).last_hidden_state[0, 1:-1]
words = text.split()
numbers = np.asarray([number for number, word in enumerate(words) for _ in word])
joined = [index for index, character in enumerate(text) if character != " "]
of_characters = np.full(len(text), -1)
of_characters[joined] = numbers
begin_of = np.asarray([sum(len(word) + 1 for word in words[:number]) for number in range(len(words))])
words_of = of_characters[spans[:, 0]]
by_word = annotation.annotate(
    TokenizedText({}, words, "tokens", spans - begin_of[words_of][:, None], words_of, "here"))["senses_of_states"]
print(json.dumps({
    "resumed": begins,
    "same": same,
    "parents": {name: sorted(step.parents) for name, step in steps.items()},
    "judging": [bool(steps["report"].stage.annotations), job("report", folder / "report").annotation_models],
    "renamed": renamed["senses"] == steps["senses"].fingerprint,
    "other": other["senses"] != steps["senses"].fingerprint,
    "answers": [before, after],
    "lines": [together, alone],
    "read": read.tolist(),
    "direct": (1 + states[:, :4].argmax(1)).tolist(),
    "by_word": by_word.tolist(),
    "record": model.record.model_dump(mode="json")["annotations"],
    "table": list(weights("classify")["bert.embeddings.word_embeddings.channels.state_senses.rows.weight"].shape),
    "learned": float(
        (weights("senses")["bert.embeddings.word_embeddings.channels.state_senses.rows.weight"][1:]
         - weights("classify")["bert.embeddings.word_embeddings.channels.state_senses.rows.weight"][1:]).abs().max()),
}))
""".replace("+ WIDE", f"+ {masked_lm_stage('wide', tokens=8192)!r}")
)


@pytest.fixture(scope="module")
def outcome(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    result: dict[str, Any] = outcome_with(tmp_path_factory.mktemp("senses"), FILES, RECIPE, tables, SCRIPT)
    return result


def test_the_channel_follows_from_the_states_of_the_other_network(outcome: dict[str, Any]) -> None:
    assert outcome["read"] == outcome["direct"] == outcome["by_word"] and len(set(outcome["read"])) > 1
    assert outcome["table"] == [5, 16] and outcome["learned"] > 1e-4, "the table is read and trained"


def test_an_interrupted_stage_ends_with_the_same_weights(outcome: dict[str, Any]) -> None:
    assert outcome["resumed"] == 5 and outcome["same"]


def test_the_stage_that_is_read_is_a_parent_and_its_name_is_no_identity(outcome: dict[str, Any]) -> None:
    assert outcome["parents"] == {
        "vectors": [],
        "senses": ["annotations:0"],
        "classify": ["annotations:0", "start"],
        "share": ["annotations:0", "annotations:again:0", "start"],
        "report": ["subject:classify@0"],
    }
    assert outcome["judging"] == [True, {}], "what judges inherits an annotation, and reads no model of its own"
    assert outcome["renamed"] and outcome["other"]


def test_a_finished_model_holds_the_one_that_it_reads(outcome: dict[str, Any]) -> None:
    before, after = outcome["answers"]
    assert before == after
    together, alone = outcome["lines"]
    assert together == alone, "a task that is taken out of several, too"
    (record,) = outcome["record"]
    assert record["name"] == "state_senses" and not record["from"] and len(record["folder"]) == 12
