"""Companion networks of the trained one: a frozen teacher, or a generator that trains along."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import RecipeError
from pipelines.lineage.results import SCRATCH
from pipelines.models.opening import COMPANIONS, ModelRecord, build_network, choose_attention, open_model
from pipelines.models.weights import read_weights
from pipelines.parts.heads import Head
from pipelines.parts.objectives import Batch, Companion
from pipelines.recipe.lines import line_views
from pipelines.training.assembly.own_tokens import OwnTokens
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.recipe.job import Job
    from pipelines.training.assembly.shared_tokens import SharedTokens


class CompanionFactory:
    """Creates the companions of the objectives of one line of a stage; "" where it has no others.

    `shared_tokens` are those of a teacher that has another vocabulary than `network`.
    """

    def __init__(
        self, job: Job, network: PreTrainedModel, line: str = "", shared_tokens: SharedTokens | None = None
    ) -> None:
        self.network = network
        self._job, self._line, self._shared_tokens = job, line, shared_tokens

    def teacher(self) -> Companion:
        """The stage's teacher, frozen, with the head it was trained with."""
        import torch

        folder = self._job.teachers.get(self._line)
        if folder is None:
            raise RecipeError(
                f"stage {self._job.stage_name}: an objective needs a teacher, but the stage names none; add `teacher: "
                "<stage>`"
            )
        opened = open_model(folder, self._job.runtime.accelerator)

        @torch.no_grad()
        def forward(batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
            if (shared := self._shared_tokens) is None:
                return opened.record.head.signals(opened.network, batch, requested)
            signals = opened.record.head.signals(opened.network, shared.read(batch), requested)
            return shared.output(signals, self.network.config.vocab_size)

        if line_views(self._job.stage)[self._line].teacher_vocabulary == "own_tokens":
            encoded = self._job.out / SCRATCH / "encoded" / (self._line or "stage") / "teacher"
            return Companion(opened.network, forward, own_tokens=OwnTokens(opened, encoded))
        shared_ids = None if self._shared_tokens is None else self._shared_tokens.shared_ids
        return Companion(opened.network, forward, shared_ids=shared_ids)

    def trained(self, name: str, head: str, config: PretrainedConfig) -> Companion:
        """A network of `config` with `head` that trains along with the stage's own.

        It starts from the companion `name` that the start of the stage was saved with, if any, else from random
        weights.
        """
        chosen = Head.model_validate(head)
        choose_attention(config, self._job.runtime.accelerator)
        network = build_network(ModelRecord(head=chosen), config)
        if self._job.start is not None and (saved := self._job.start / COMPANIONS / self._line / name).is_dir():
            _load_weights(network, saved)
        network.train()
        return Companion(network, lambda batch, requested: chosen.signals(network, batch, requested), trains=True)


def save_companions(companions: dict[str, Companion], out: Path, line: str = "") -> None:
    """Write every companion of a line that was trained as a Hugging Face folder under `out`."""
    for name, companion in companions.items():
        if companion.trains:
            companion.network.eval()
            companion.network.config._attn_implementation = None
            companion.network.save_pretrained(out / COMPANIONS / line / name)


def _load_weights(network: PreTrainedModel, folder: Path) -> None:
    weights = read_weights(folder)
    expected = network.state_dict()
    tied = set(getattr(network, "all_tied_weights_keys", None) or {})
    mismatched = [key for key, value in weights.items() if key not in expected or expected[key].shape != value.shape]
    mismatched += [key for key in expected if key not in weights and key not in tied]
    if mismatched:
        raise RecipeError(
            f"{folder}: its weights do not match this stage's companion, first {mismatched[0]}; keep the objective's "
            "options as they were in the stage it continues"
        )
    network.load_state_dict(weights, strict=False)
    network.tie_weights()
