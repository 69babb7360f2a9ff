"""A strategy that adds modules to the network of each line is new files only: they compute for their line alone, and
are saved, resumed, continued and extracted with its head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contracts.added_parts import STAGES, outcome_with
from tests.pipelines.training.lines_recipe import RECIPE

NETWORK = '''\
from __future__ import annotations

import torch
from torch import Tensor, nn

from pipelines.networks.line_modules import ModulesOfLine


class LayerGains(ModulesOfLine):
    """What each layer of a line returns, times one gain for each of its features."""

    def __init__(self, layers: nn.ModuleList, width: int) -> None:
        super().__init__()
        self.gains = nn.Parameter(1 + 0.1 * torch.randn(len(layers), width))
        for layer in layers:
            layer.register_forward_hook(self._multiply)
        self._number = {id(layer): number for number, layer in enumerate(layers)}

    def _multiply(self, layer: nn.Module, inputs: object, states: Tensor) -> Tensor:
        return states * self.gains[self._number[id(layer)]] if self.computes else states
'''
STRATEGY = '''\
from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.strategies import Decision, Strategy

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Gains(Strategy, name="layer_gains"):
    """Everything trains, with gains of each line above every layer (Liu et al. 2022, IA3)."""

    paper = "arXiv:2205.05638"
    decides = frozenset({Decision.WHICH})

    def extend_line(self, network: PreTrainedModel) -> None:
        from pipelines.networks.layer_gains import LayerGains

        gains = LayerGains(network.base_model.encoder.layer, network.config.hidden_size)
        gains.add_to(network, "layer_gains")
'''
FILES = {"networks/layer_gains.py": NETWORK, "parts/strategies/layer_gains.py": STRATEGY}
GAINS = RECIPE.replace("start: general\n    strategy: full", "start: general\n    strategy: layer_gains")
SCRIPT = (
    STAGES
    + """
from transformers import AutoModel
from pipelines.models.extracting import extract_task
from pipelines.models.opening import open_lines, open_model
from pipelines.vocabulary import Field, Signal
begins, same = resumed("share")
opened = open_lines(folder / "share", "cpu")
ids = torch.tensor([[5, 6, 7, 8]])
batch = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: torch.ones_like(ids), Field.MASKED_POSITIONS: torch.tensor([2])}
def logits(one):
    (signal,) = one.record.head.provides & {Signal.LOGITS, Signal.MASKED_LOGITS}
    return one.record.head.signals(one.network, batch, frozenset({signal}))[signal]
before = {name: logits(line) for name, line in opened.lines.items()}
extracted = logits(open_model(extract_task(folder / "share", "topic", folder / "topic"), "cpu"))
with torch.no_grad():
    opened.lines["topic"].network.layer_gains.gains.mul_(2)
trained, alone = weights("share"), weights("alone")
_, loading = AutoModel.from_pretrained(folder / "share", output_loading_info=True, add_pooling_layer=False)
learned = trained["heads.topic_head.layer_gains.gains"] - trained["heads.again_head.layer_gains.gains"]
print(json.dumps({
    "names": sorted(name for name in trained if "gains" in name),
    "others": sorted(name for name in trained if not name.startswith(("bert.", "heads."))),
    "missing": sorted(loading["missing_keys"]),
    "resumed": begins,
    "same": same,
    "changed": sorted(name for name, line in opened.lines.items() if not torch.equal(before[name], logits(line))),
    "differ": float(learned.abs().max()),
    "extracted": torch.equal(extracted, before["topic"]),
    "alone": sorted(name for name in alone if "gains" in name),
}))
"""
)


@pytest.fixture(scope="module")
def outcome(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    recipe = GAINS.partition("  masks:")[0].replace("name: lines", "name: small")
    result: dict[str, Any] = outcome_with(tmp_path_factory.mktemp("gains"), FILES, recipe, tables, SCRIPT)
    return result


def test_each_line_has_modules_of_its_own_beside_its_head(outcome: dict[str, Any]) -> None:
    assert outcome["names"] == [f"heads.{line}_head.layer_gains.gains" for line in ("again", "mlm", "topic")]
    assert not outcome["others"] and not outcome["missing"], "plain transformers opens the backbone"
    assert outcome["differ"] > 0.01


def test_they_compute_for_their_line_alone(outcome: dict[str, Any]) -> None:
    assert outcome["changed"] == ["topic"]
    assert outcome["extracted"], "as a folder of its own the line answers as it did beside others"


def test_an_interrupted_stage_ends_with_the_same_weights(outcome: dict[str, Any]) -> None:
    assert outcome["resumed"] == 5 and outcome["same"]


def test_a_stage_of_one_head_has_one_of_them(outcome: dict[str, Any]) -> None:
    assert outcome["alone"] == ["layer_gains.gains"]
