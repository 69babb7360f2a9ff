"""Kernels of our own for a training step on a processor: C files, compiled by the system's compiler when a store's first stage
trains, and the modules that call them.

swapping.py       which modules of torch and transformers are replaced, and by what
compiled_adamw.py AdamW that clips and writes bfloat16 copies within its step
operations.py     the networks' replaceable operations
library.py        the compiled C files
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.parts.accelerators import Accelerator

if TYPE_CHECKING:
    from torch.optim import Optimizer
    from transformers import PreTrainedModel

KNOWN = ("5.23",)
"""Minor versions of transformers whose blocks were compared with ours, forward and backward."""

log = logging.getLogger(__name__)


class CpuKernels(Accelerator, name="cpu_kernels"):
    """bfloat16 and float32 kernels for x86 and Arm processors, 2.1 to 2.5 times as fast as torch's on small networks.

    Blocks of transformers are recognised by their bytecode, so only versions that were compared are trusted: on another one this
    accelerator logs a warning once and steps aside.
    """

    version: ClassVar[int] = 1

    def applies(self, device: str) -> bool:
        return device == "cpu"

    def give(self, networks: Sequence[PreTrainedModel], folder: Path) -> bool:
        if not known():
            return False
        from pipelines.parts.accelerators.cpu_kernels.swapping import make_faster

        return make_faster(networks, folder)

    def optimizer(
        self, groups: list[dict[str, Any]], *, clip: float, sparse: bool, options: dict[str, Any]
    ) -> Optimizer | None:
        from pipelines.parts.accelerators.cpu_kernels.compiled_adamw import CompiledAdamW

        if not CompiledAdamW.takes(parameter for group in groups for parameter in group["params"]):
            return None
        return CompiledAdamW(groups, clip=clip, in_rows=sparse, **options)


@cache
def known() -> bool:
    """Whether the installed transformers is one that was compared; logs a warning, once a process, where it is not."""
    installed = version("transformers")
    if ".".join(installed.split(".")[:2]) in KNOWN:
        return True
    log.warning(
        "transformers %s: the CPU kernels were compared with %s only, so torch's own kernels compute, which takes about "
        "twice as long; results differ by rounding and by the numbers that dropout draws",
        installed,
        ", ".join(KNOWN),
    )
    return False
