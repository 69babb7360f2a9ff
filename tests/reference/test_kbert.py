"""K-BERT (Liu et al. 2019): the sentence tree of figures 2 and 3, and the network that reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from pipelines.parts.attention.visible_matrix import VisibleMatrix
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.parts.knowledge.triples import Triples
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.task_families.encoding import FieldArrays
from pipelines.vocabulary import Field, Signal

HARD = ["[CLS]", "tim", "cook", "ceo", "apple", "is", "visiting", "beijing", "capital", "china", "is_a", "city", "now"]
"""Figure 2: the tree as one sequence, in lower case; "is_a" is one word here."""
SOFT = [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 6, 7, 6]
"""Figure 2: the soft position of each of them."""
TRUNK = [0, 1, 2, 5, 6, 7, 12]
"""Hard positions of the sentence itself."""
BRANCHES = [([1, 2], [3, 4]), ([7], [8, 9]), ([7], [10, 11])]
"""Hard positions of each entity and of a branch of it: Tim Cook – CEO Apple, Beijing – capital China and is_a City."""
GRAPH = "Tim Cook\tCEO\tApple\nBeijing\tcapital\tChina\nBeijing\tis_a\tCity\nApple\tis_a\tcompany\n"


def figure_3() -> NDArray[np.bool_]:
    """The visible matrix by equation 4: the sentence sees itself, a branch itself and its entity, which sees it."""
    visible = np.zeros((len(HARD), len(HARD)), dtype=np.bool_)
    visible[np.ix_(TRUNK, TRUNK)] = True
    for entity, branch in BRANCHES:
        visible[np.ix_(branch, branch)] = True
        visible[np.ix_(entity, branch)] = visible[np.ix_(branch, entity)] = True
    return visible


@pytest.fixture(scope="module")
def words() -> PreTrainedTokenizerFast:
    """A WordPiece tokenizer that has the words of the figure."""
    text = ("Tim Cook is currently visiting Beijing now. CEO Apple capital China is a City company. " * 50).replace(
        "is a ", "is_a "
    )
    return WordPiece(vocab_size=400).train([text] * 4)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.tsv"
    path.write_text(GRAPH, encoding="utf-8")
    return path


def injected(sentence: str, tokenizer: PreTrainedTokenizerFast, graph: Path, **options: Any) -> FieldArrays:
    encoding = tokenizer(sentence)
    batch: FieldArrays = {
        Field.INPUT_IDS: np.asarray([encoding["input_ids"]]),
        Field.ATTENTION_MASK: np.asarray([encoding["attention_mask"]]),
        Field.TOKEN_TYPE_IDS: np.asarray([encoding["token_type_ids"]]),
    }
    return VisibleMatrix().apply(Triples(file=graph, **options).injection(tokenizer, 32)(batch))


def in_hard_order(batch: FieldArrays) -> list[int]:
    """The columns of a row in the order of the figure: each branch after the last token of its entity."""
    branches, entities = batch[Field.BRANCHES][0], batch[Field.ENTITIES][0]
    real = (batch[Field.ATTENTION_MASK][0] == 1) | (branches > 0)
    last = {entity: int(np.flatnonzero((entities == entity) & (branches == 0)).max()) for entity in set(entities[real])}
    return sorted(
        np.flatnonzero(real).tolist(),
        key=lambda column: (last[entities[column]] if branches[column] else column, branches[column], column),
    )


def test_the_tree_is_that_of_the_paper(words: PreTrainedTokenizerFast, graph: Path) -> None:
    batch = injected("Tim Cook is visiting Beijing now", words, graph)
    columns = in_hard_order(batch)
    ids = batch[Field.INPUT_IDS][0, columns]
    # this tokenizer reads "is_a" as three tokens, and closes a text: both are merged and left out below
    written = words.convert_ids_to_tokens(ids.tolist())
    at = written.index("_") - 1
    assert written[at : at + 3] == ["is", "_", "a"] and written[-1] == "[SEP]"
    keep = [index for index in range(len(columns) - 1) if index not in (at + 1, at + 2)]
    tokens = [written[index] for index in keep]
    tokens[at] = "is_a"
    assert tokens == HARD
    soft = batch[Field.POSITION_IDS][0, columns][keep]
    soft[at + 1] -= 2  # "city" comes after two tokens more
    assert soft.tolist() == SOFT
    chosen = np.asarray(columns)[keep]
    assert np.array_equal(batch[Field.VISIBLE][0][np.ix_(chosen, chosen)], figure_3())


def test_the_text_keeps_its_columns_and_facts_have_no_mask(words: PreTrainedTokenizerFast, graph: Path) -> None:
    sentence = "Tim Cook is currently visiting Beijing now"
    plain = words(sentence)["input_ids"]
    batch = injected(sentence, words, graph)
    assert batch[Field.INPUT_IDS][0, : len(plain)].tolist() == plain
    assert batch[Field.ATTENTION_MASK][0].sum() == len(plain)
    assert batch[Field.POSITION_IDS][0, : len(plain)].tolist() == list(range(len(plain)))


def network_of(tokenizer: PreTrainedTokenizerFast, architecture: str) -> PreTrainedModel:
    torch.manual_seed(0)
    config = Transformer(architecture=architecture, positions=64).tiny().config(tokenizer, 32)
    config._attn_implementation = "eager"
    network = MaskedLMHead().build(config, None).eval()
    for parameter in network.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return network


@pytest.mark.parametrize("architecture", ["bert", "roberta", "electra"])
@torch.no_grad()
def test_facts_after_the_text_answer_as_facts_after_their_entities(
    architecture: str, words: PreTrainedTokenizerFast, graph: Path
) -> None:
    """Transformers' network over the paper's order of tokens, with its soft positions and its visible matrix."""
    network = network_of(words, architecture)
    batch = injected("Tim Cook is currently visiting Beijing now", words, graph)
    if architecture != "bert":
        del batch[Field.TOKEN_TYPE_IDS]
    width = batch[Field.INPUT_IDS].shape[1]
    fields: Any = {name: torch.from_numpy(value) for name, value in batch.items()}
    fields[Field.MASKED_POSITIONS] = torch.arange(width)
    ours = MaskedLMHead().signals(network, fields, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS]

    columns = in_hard_order(batch)
    offset = words.pad_token_id + 1 if architecture == "roberta" else 0
    visible = torch.from_numpy(batch[Field.VISIBLE][:, columns][:, :, columns])
    plain = network(
        input_ids=fields[Field.INPUT_IDS][:, columns],
        position_ids=fields[Field.POSITION_IDS][:, columns] + offset,
        attention_mask=torch.zeros(visible.shape).masked_fill(~visible, -1e9)[:, None],
    ).logits[0]
    torch.testing.assert_close(ours[columns], plain, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_a_fact_reaches_the_text_through_its_entity_alone(words: PreTrainedTokenizerFast, graph: Path) -> None:
    """§3.3: [Apple] and [China] do not see each other, nor [CLS] and [Apple]; one layer changes the entity alone."""
    network = network_of(words, "bert")
    batch = injected("Tim Cook is currently visiting Beijing now", words, graph)
    other = {name: value.copy() for name, value in batch.items()}
    apple = int(np.flatnonzero(batch[Field.INPUT_IDS][0] == words.convert_tokens_to_ids("apple"))[0])
    other[Field.INPUT_IDS][0, apple] = words.convert_tokens_to_ids("company")
    states = []
    for one in (batch, other):
        fields: Any = {name: torch.from_numpy(value) for name, value in one.items()}
        signals = MaskedLMHead().signals(network, fields, frozenset({Signal.HIDDEN_STATES}))
        states.append(signals[Signal.HIDDEN_STATES][1][0])
    changed = (states[0] != states[1]).any(-1).numpy()
    sees = batch[Field.VISIBLE][0][:, apple]
    tokens = words.convert_ids_to_tokens(batch[Field.INPUT_IDS][0].tolist())
    assert np.array_equal(changed, sees)
    assert {tokens[column] for column in np.flatnonzero(changed)} == {"tim", "cook", "ceo", "apple"}
