"""A strategy that adds modules to the network of each line is new files only: they compute for their line alone, and
are saved, resumed, continued and extracted with its head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contracts.test_one_new_file import outcome_with
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
SCRIPT = """
import json, sys
from pathlib import Path
import torch
from safetensors.torch import load_file
from transformers import AutoModel
import pipelines
from pipelines.lineage.provenance import DataSource
from pipelines.models.extracting import extract_task
from pipelines.models.opening import open_lines, open_model
from pipelines.recipe.job import Runtime
from pipelines.training.metrics_log import read_metrics
from pipelines.lineage.results import METRICS
from pipelines.training.ranks.run import run
from pipelines.vocabulary import Field, Signal
from tests.pipelines.training.test_resume_of_shapes import interrupted
from tests.steps import job_of, library_of, plan_of
folder, *tables = map(Path, sys.argv[1:])
assert Path(pipelines.__file__).is_relative_to(folder)
tables = {path.stem: path for path in tables}
sources = {name: DataSource(digest=name, path=str(path)) for name, path in tables.items()}
plan = plan_of(library_of(folder, small=(folder / "small.yaml").read_text()), "small", sources)
steps, folders = {step.name: step for step in plan.steps}, {}
def job(name, out):
    return job_of(steps[name], folders, tables, out, Runtime(log_every=7, checkpoint_every=5))
for name in ("general", "share", "alone"):
    folders[steps[name].fingerprint] = folder / name
    run(job(name, folder / name))
again = job("share", folder / "again")
interrupted(again, 7)
resumed = run(again).resumed_from_step
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
weights, start, ended = (load_file(folder / name / "model.safetensors") for name in ("share", "alone", "again"))
_, loading = AutoModel.from_pretrained(folder / "share", output_loading_info=True, add_pooling_layer=False)
learned = weights["heads.topic_head.layer_gains.gains"] - weights["heads.again_head.layer_gains.gains"]
print(json.dumps({
    "names": sorted(name for name in weights if "gains" in name),
    "others": sorted(name for name in weights if not name.startswith(("bert.", "heads."))),
    "missing": sorted(loading["missing_keys"]),
    "resumed": resumed,
    "same": weights.keys() == ended.keys() and all(torch.equal(value, ended[name]) for name, value in weights.items()),
    "changed": sorted(name for name, line in opened.lines.items() if not torch.equal(before[name], logits(line))),
    "differ": float(learned.abs().max()),
    "extracted": torch.equal(extracted, before["topic"]),
    "alone": sorted(name for name in start if "gains" in name),
    "lines": len([line for line in read_metrics(folder / "share" / METRICS) if "train/topic/cross_entropy" in line]),
}))
"""


@pytest.fixture(scope="module")
def outcome(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    recipe = GAINS.partition("  masks:")[0].replace("name: lines", "name: small")
    result: dict[str, Any] = outcome_with(tmp_path_factory.mktemp("gains"), FILES, recipe, tables, SCRIPT)
    return result


def test_each_line_has_modules_of_its_own_beside_its_head(outcome: dict[str, Any]) -> None:
    assert outcome["names"] == [f"heads.{line}_head.layer_gains.gains" for line in ("again", "mlm", "topic")]
    assert not outcome["others"] and not outcome["missing"], "plain transformers opens the backbone"
    assert outcome["lines"] and outcome["differ"] > 0.01


def test_they_compute_for_their_line_alone(outcome: dict[str, Any]) -> None:
    assert outcome["changed"] == ["topic"]
    assert outcome["extracted"], "as a folder of its own the line answers as it did beside others"


def test_an_interrupted_stage_ends_with_the_same_weights(outcome: dict[str, Any]) -> None:
    assert outcome["resumed"] == 5 and outcome["same"]


def test_a_stage_of_one_head_has_one_of_them(outcome: dict[str, Any]) -> None:
    assert outcome["alone"] == ["layer_gains.gains"]
