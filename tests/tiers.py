"""Which tests are slow or long, and which stay together on one worker.

`make test` runs everything, `make test-fast` what is neither slow nor long. A module is one group, for its tests share
what it has made; folders of TOGETHER are one group, for their modules do. Workers take the groups one after the other,
those of SOONER first: a long group that began last would leave the other workers idle.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SLOW = "slow_tier"
"""The marker of a test that starts servers, browsers, clusters, launchers or DVC, or that injects faults."""
LONG = "long"
"""The marker of a test that trains, converts or validates for seconds."""
LONG_MODULES = Path(__file__).parent / "long_modules.txt"
"""The paths of the modules all of whose tests are long, as measured by `tests/processor_seconds.py`."""
FLOWS = (
    *(f"tests/flows/test_{name}.py" for name in ("claim", "compress", "lattice", "mistakes", "together")),
    "tests/flows/process/test_server_gone.py",
)
RUNS = tuple(
    f"tests/flows/test_{name}.py"
    for name in ("complete_runs", "left_behind", "notebook", "promote", "regime", "reproduce")
)
"""Those that run flows, in two halves. What the first run computed is made once for both, and these alone look at the
checkout of that run, which they change."""
SERVERS = tuple(f"tests/tasks/servers/test_{name}.py" for name in ("pool", "schedule", "server_stopped", "up_and_down"))
"""Those of the servers that start, stop and schedule, half of the time of all, with servers of their own."""
SLOW_MODULES = (
    *FLOWS,
    *RUNS,
    "tests/benchmarks/test_gpu.py",
    "tests/benchmarks/test_pacing.py",
    "tests/benchmarks/test_page.py",
    "tests/benchmarks/test_turns.py",
    "tests/deploy/test_package.py",
    "tests/deploy/test_site.py",
    "tests/faults/",
    "tests/pipelines/corpora/test_growth.py",
    "tests/pipelines/serving/runtimes/test_openvino.py",
    "tests/pipelines/training/test_large_tables.py",
    "tests/pipelines/training/test_ranks",
    "tests/pipelines/training/test_resume",
    "tests/tasks/datasets/",
    "tests/tasks/launchers/",
    "tests/tasks/serving/test_serve.py",
    "tests/tasks/servers/",
    "tests/tasks/tracking/test_outages.py",
)
"""Beginnings of their paths."""
TOGETHER: Mapping[str, str] = {
    # a thousand pairs of heads and bodies, which share nothing with the rest of their folder
    "tests/contracts/test_heads": "heads",
    "tests/contracts/": "contracts",
    # with checkouts and servers of their own: beside those of their folders, which are the longest groups
    "tests/flows/test_together": "together",
    "tests/tasks/servers/test_postgres": "postgres",
    "tests/tasks/servers/test_temporary_server": "temporary_server",
    **dict.fromkeys(FLOWS, "flows"),
    **dict.fromkeys(RUNS, "runs"),
    **dict.fromkeys(SERVERS, "starting_servers"),
    # SciPy's documentation, read once
    "tests/pipelines/corpora/test_documented_tasks": "documentation",
    "tests/pipelines/corpora/test_sessions": "documentation",
    "tests/pipelines/judging/evaluations/": "evaluations",
    "tests/pipelines/serving/runtimes/": "runtimes",
    "tests/tasks/launchers/test_ray": "ray",
    "tests/tasks/launchers/test_slurm": "slurm",
    "tests/tasks/datasets/": "datasets",
    "tests/tasks/servers/": "servers",
}
"""Beginnings of paths → the group of what shares a cluster, servers, or what is kept in memory."""
SOONER = (
    "tests/tasks/servers/",
    # first of its group: meanwhile the other half makes the first run, which both need
    "tests/flows/test_mistakes.py",
    "tests/flows/",
    "tests/deploy/test_package.py",
    "tests/pipelines/training/test_ranks",
    "tests/pipelines/training/test_resume",
    "tests/pipelines/recipe/test_recipes.py",
    "tests/pipelines/serving/",
    "tests/tasks/datasets/",
    "tests/tasks/launchers/",
    "tests/contracts/",
    "tests/pipelines/judging/",
    "tests/tasks/",
    "tests/benchmarks/",
)
"""Beginnings of the paths of the longest groups, the longest first."""


def slow(module: str) -> bool:
    """Whether the module at the path `module` is in the slow tier."""
    return module.startswith(SLOW_MODULES)


def group_of(module: str) -> str:
    """The group of the tests of a module."""
    return next((group for start, group in TOGETHER.items() if module.startswith(start)), module)


def turn_of(module: str) -> int:
    """The place of a module in the order in which groups begin."""
    return next((turn for turn, start in enumerate(SOONER) if module.startswith(start)), len(SOONER))
