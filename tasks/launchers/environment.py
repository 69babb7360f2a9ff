"""What must be in a training process's environment before torch is imported.

A busy neighbour costs up to sixty times the time with OpenMP's defaults, and a heap that gives its pages back costs a small
model half its speed. How many threads a job takes is set job by job.
"""

from __future__ import annotations


def training_environment() -> dict[str, str]:
    """Variables to add, wherever a rank starts."""
    return {
        "OMP_WAIT_POLICY": "passive",
        "GOMP_SPINCOUNT": "5000",  # some 10 µs: threads of a step that meet all the time need not be woken each time
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # weights and scores in pages of 2 MB: about 5 % of a step
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "-1",
        "TOKENIZERS_PARALLELISM": "true",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
    }
