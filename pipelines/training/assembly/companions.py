"""Networks beside the trained one: a teacher that is asked, a generator that trains along."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import RecipeError
from pipelines.models.opening import COMPANIONS, Record, choose_attention, open_model, put_together, read_weights
from pipelines.parts.heads import Head
from pipelines.parts.objectives import Batch, Companion
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.recipe.job import Job


class CompanionFactory:
    """What a stage's objectives may ask for when they make their companions."""

    def __init__(self, job: Job, network: PreTrainedModel) -> None:
        self.network = network
        self._job = job

    def teacher(self) -> Companion:
        """The stage's teacher, frozen, under the head it was trained with."""
        import torch

        if self._job.teacher is None:
            raise RecipeError(f"stage {self._job.stage_name}: an objective asks for a teacher and the stage names none")
        opened = open_model(self._job.teacher, self._job.runtime.accelerator)

        @torch.no_grad()
        def ask(batch: Batch, wanted: frozenset[Signal]) -> dict[Signal, Any]:
            return opened.record.head.signals(opened.network, batch, wanted)

        return Companion(opened.network, ask)

    def trained(self, name: str, head: str, config: PretrainedConfig) -> Companion:
        """A network of `config` under `head` that trains beside the stage's own, from where its last stage left it."""
        chosen = Head.model_validate(head)
        choose_attention(config, self._job.runtime.accelerator)
        network = put_together(Record(head=chosen), config)
        if self._job.start is not None and (saved := self._job.start / COMPANIONS / name).is_dir():
            _take_over(network, saved)
        network.train()
        return Companion(network, lambda batch, wanted: chosen.signals(network, batch, wanted), trains=True)


def save_companions(companions: dict[str, Companion], out: Path) -> None:
    """Write every companion that trained as a Hugging Face folder under `out`."""
    for name, companion in companions.items():
        if companion.trains:
            companion.network.eval()
            companion.network.config._attn_implementation = None
            companion.network.save_pretrained(out / COMPANIONS / name)


def _take_over(network: PreTrainedModel, folder: Path) -> None:
    weights = read_weights(folder)
    wanted = network.state_dict()
    tied = set(getattr(network, "all_tied_weights_keys", None) or {})
    unfit = [key for key, value in weights.items() if key not in wanted or wanted[key].shape != value.shape]
    unfit += [key for key in wanted if key not in weights and key not in tied]
    if unfit:
        raise RecipeError(
            f"{folder}: its weights are not those of this stage's companion, beginning with {unfit[0]}; keep the objective's "
            "options as they were in the stage it continues"
        )
    network.load_state_dict(weights, strict=False)
    network.tie_weights()
