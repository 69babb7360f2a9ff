"""Environment variables that a training process needs before torch is imported.

With OpenMP's defaults, another busy process can slow a job down by a factor of up to sixty, and a heap that returns its
pages to the system costs a small model half its speed. The number of threads is set for each job separately.
"""

from __future__ import annotations


def training_environment() -> dict[str, str]:
    """Variables to add to the environment of every rank."""
    return {
        "OMP_WAIT_POLICY": "passive",
        "GOMP_SPINCOUNT": "5000",  # about 10 µs: threads that synchronise often within a step are not put to sleep
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # weights and scores in pages of 2 MB: saves about 5 % of a step
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "-1",
        "TOKENIZERS_PARALLELISM": "true",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
    }
