"""C kernels for training on a CPU, compiled by the system's compiler when the first stage of a store trains, and the
modules that call them.

swapping.py        which modules of torch and transformers are replaced, and by what
eligibility.py     when a kernel may replace a layer
compiled_adamw.py  AdamW that clips gradients and writes bfloat16 copies within its step
operations.py      implementations of the networks' replaceable operations
library.py         the compiled C files
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

TESTED_VERSIONS = ("5.23",)
"""Minor versions of transformers whose blocks were compared with these kernels, forward and backward."""

log = logging.getLogger(__name__)


class CpuKernels(Accelerator, name="cpu_kernels"):
    """bfloat16 and float32 kernels for x86 and Arm processors, 2.1 to 2.5 times as fast as torch's on small networks.

    Blocks of transformers are recognised by their bytecode, so only tested versions are trusted: on another version
    this accelerator logs a warning once and does nothing.
    """

    version: ClassVar[int] = 1

    def applies(self, device: str) -> bool:
        return device == "cpu"

    def accelerate(self, networks: Sequence[PreTrainedModel], folder: Path) -> bool:
        if not is_tested_version():
            return False
        from pipelines.parts.accelerators.cpu_kernels.swapping import swap_modules

        return swap_modules(networks, folder)

    def optimizer(
        self, groups: list[dict[str, Any]], *, clip: float, sparse: bool, options: dict[str, Any]
    ) -> Optimizer | None:
        from pipelines.parts.accelerators.cpu_kernels.compiled_adamw import CompiledAdamW

        if not CompiledAdamW.supports(parameter for group in groups for parameter in group["params"]):
            return None
        return CompiledAdamW(groups, clip=clip, sparse_rows=sparse, **options)


@cache
def is_tested_version() -> bool:
    """Whether the installed version of transformers was tested; logs a warning, once per process, where it was not."""
    installed = version("transformers")
    if ".".join(installed.split(".")[:2]) in TESTED_VERSIONS:
        return True
    log.warning(
        "transformers %s: the CPU kernels were compared with %s only, so torch's own kernels compute, which takes "
        "about twice as long; results differ by rounding and by the numbers that dropout draws",
        installed,
        ", ".join(TESTED_VERSIONS),
    )
    return False
