"""A system is new files only, also where its parts exchange words of their own, look tokens up, change in the course of
a stage, and stand on a network that transformers does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.vocabulary import Channel, Field, Signal
from pipelines.words import FIELDS_OF_PARTS
from tests.contracts.test_one_new_file import trained_with
from tests.pipelines.training.small_recipe import GENERAL

IMPORTS = "from __future__ import annotations\n\nfrom pipelines.vocabulary import Field, Signal\n"
CORRUPTION = (
    IMPORTS
    + '''\
import numpy as np

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds

FIRST = Field.of_masked_positions("first_letters")


class FirstLetters(Corruption, name="first_letters"):
    """The first letter of each masked token, 0 to 25; 26 for any other sign (Yamaguchi et al. 2021, §3, First Char)."""

    paper = "arXiv:2109.01819"
    needs = frozenset({Field.MASKED_LABELS})
    provides = frozenset({FIRST})

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        signs = [text.removeprefix("##")[:1] for text in tokens.texts]
        letters = np.asarray([ord(sign) - ord("a") if "a" <= sign <= "z" else 26 for sign in signs])
        return {**batch, FIRST: letters[batch[Field.MASKED_LABELS]]}
'''
)
NETWORK = '''\
from __future__ import annotations

from torch import Tensor
from transformers import PretrainedConfig

from pipelines.networks.backbone_with_head import BackboneWithHead, linear


class FirstLetterNetwork(BackboneWithHead):
    """Scores of 27 signs for each token."""

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.letters = linear(config.hidden_size, 27, config)

    def forward(self, **inputs: Tensor) -> Tensor:
        return self.letters(self.run_backbone(inputs).last_hidden_state)
'''
HEAD = (
    IMPORTS
    + '''\
from pipelines.parts.heads import Head, backbone_inputs

LETTERS = Signal.of_head("letter_logits")


class FirstLetter(Head, name="first_letter"):
    """[M, 27]: scores of the first letter at the masked positions."""

    paper = "arXiv:2109.01819"
    needs = frozenset({Field.INPUT_IDS, Field.MASKED_POSITIONS})
    provides = frozenset({LETTERS})

    def build(self, config, task):
        from pipelines.networks.first_letter import FirstLetterNetwork

        return FirstLetterNetwork(config)

    def signals(self, network, batch, requested):
        return {LETTERS: network(**backbone_inputs(batch, network)).flatten(0, 1)[batch[Field.MASKED_POSITIONS]]}
'''
)
OBJECTIVE = (
    IMPORTS
    + '''\
from pipelines.parts.objectives import Objective

FIRST, LETTERS = Field.of_masked_positions("first_letters"), Signal.of_head("letter_logits")


class FirstLetter(Objective, name="first_letter"):
    """Cross-entropy of the letter; the other term shows how far the stage is."""

    paper = "arXiv:2109.01819"
    needs_fields = frozenset({FIRST})
    needs_signals = frozenset({LETTERS})

    def loss(self, step):
        scores = step.signals[LETTERS].log_softmax(-1)
        found = -scores.gather(1, step.batch[FIRST][:, None]).mean()
        return {"first_letter": found, "done": found.new_tensor(step.progress)}

    def counts(self, batch, network):
        return dict.fromkeys(("first_letter", "done"), len(batch[FIRST]))
'''
)
OWN_NETWORK = '''\
"""BERT without positions (Haviv et al. 2022)."""

from __future__ import annotations

from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, BertConfig, BertForMaskedLM, BertModel


class OrderlessEmbeddings(nn.Module):
    """The vectors of the tokens, normalised."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        nn.init.normal_(self.word_embeddings.weight, std=config.initializer_range)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, input_ids: Tensor | None = None, **others: object) -> Tensor:
        return self.LayerNorm(self.word_embeddings(input_ids))


class OrderlessConfig(BertConfig):
    model_type = "orderless"


class OrderlessModel(BertModel):
    config_class = OrderlessConfig

    def __init__(self, config: OrderlessConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config, add_pooling_layer)
        self.embeddings = OrderlessEmbeddings(config)


class OrderlessForMaskedLM(BertForMaskedLM):
    config_class = OrderlessConfig

    def __init__(self, config: OrderlessConfig) -> None:
        super().__init__(config)
        self.bert = OrderlessModel(config, add_pooling_layer=False)
        self.tie_weights()


def register_auto_classes() -> None:
    AutoConfig.register("orderless", OrderlessConfig, exist_ok=True)
    AutoModel.register(OrderlessConfig, OrderlessModel, exist_ok=True)
    AutoModelForMaskedLM.register(OrderlessConfig, OrderlessForMaskedLM, exist_ok=True)
'''
OWN_ARCHITECTURE = '''\
"""BERT without positions (Haviv et al. 2022)."""

from __future__ import annotations

from pipelines.parts.architectures import Architecture, LayerNames
from pipelines.vocabulary import Ability


class Orderless(Architecture, name="orderless"):
    """An encoder that reads a text as a set of its tokens."""

    paper = "arXiv:2203.16634"

    offers = frozenset({Ability.BIDIRECTIONAL, Ability.ONE_STACK})
    tiny = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    stacks = {"encoder.layer": LayerNames("num_hidden_layers", ("intermediate.dense", "output.dense"))}
    embedding_tables = ("embeddings.word_embeddings",)
    masked_lm = ("cls.predictions.transform", "cls.predictions.decoder")

    def register(self) -> None:
        from pipelines.networks.orderless import register_auto_classes

        register_auto_classes()
'''
FILES = {
    "parts/corruptions/first_letters.py": CORRUPTION,
    "parts/heads/first_letter.py": HEAD,
    "parts/objectives/first_letter.py": OBJECTIVE,
    "networks/first_letter.py": NETWORK,
    "parts/architectures/orderless.py": OWN_ARCHITECTURE,
    "networks/orderless.py": OWN_NETWORK,
}
LINES = """\
    lines:
      words: {}
      letters:
        corruption: [{name: token_mask, rate: 0.2}, first_letters]
        head: first_letter
        objective: first_letter
    mixing: alternating
"""
WITH_FILES = GENERAL.replace("positions: 64", "architecture: orderless").replace("    strategy", f"{LINES}    strategy")


def test_words_strings_progress_and_a_network_of_ones_own_need_new_files_only(
    tmp_path: Path, tables: dict[str, Path]
) -> None:
    (line,) = (line for line in trained_with(tmp_path, FILES, WITH_FILES, tables) if "train/loss" in line)
    # one of 27 signs, and a token of 512, are told by chance at first: log(27) = 3.3, log(512) = 6.2
    assert 2.5 < line["train/letters/first_letter"] < 3.6 and 5 < line["train/words/masked_lm"] < 7
    steps = int(line["step"])
    done = [step / steps for step in range(1, steps, 2)]
    assert line["train/letters/done"] == pytest.approx(sum(done) / len(done))


def test_a_field_of_parts_says_what_it_has_values_for_and_says_so_once() -> None:
    turns = Field.of_windows("turns_of_trial")
    assert turns is Field("turns_of_trial") is Field.of_windows("turns_of_trial") and turns.is_per_window
    assert (
        Field.of_masked_positions("letters_of_trial").is_per_masked_position
        and Field.MASKED_LABELS.is_per_masked_position
    )
    rows = Field.of_rows("relations_of_trial")
    assert not (rows.is_channel or turns.is_channel) and not (rows.is_per_window or rows.is_per_masked_position)
    assert not {turns, rows} & set(Field), "a word of parts is none of the vocabulary's"
    with pytest.raises(ValueError, match="gives the field 'turns_of_trial' values for each word window, this one for"):
        Field.of_rows("turns_of_trial")
    with pytest.raises(ValueError, match="'labels' is a field of every batch already"):
        Field.of_rows("labels")
    Channel("polarity_of_trial", size=3)
    with pytest.raises(ValueError, match="'polarity_of_trial' is a field of a channel already"):
        Field.of_rows("polarity_of_trial")
    with pytest.raises(ValueError, match="'relations_of_trial' is a field of parts, with values for each row, and no"):
        Channel("relations_of_trial", size=3)
    for name in ("turns_of_trial", "letters_of_trial", "relations_of_trial"):
        del FIELDS_OF_PARTS[name]


def test_a_signal_of_parts_is_one_signal_and_one_that_exists_stays_itself() -> None:
    assert Signal.of_head("logits") is Signal.LOGITS
    assert Signal.of_head("letters_of_trial") is Signal("letters_of_trial") is Signal.of_head("letters_of_trial")
    assert not Signal.of_head("letters_of_trial").is_listed and Signal.LOGITS.is_listed
