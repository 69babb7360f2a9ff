"""Kind of stage → the function that computes it.

Functions are named, not imported, so that the code identity of a stage covers the code of its own kind only.
"""

from __future__ import annotations

from pipelines.recipe.kinds import Kind

ENTRY = {
    Kind.PRETRAIN: "pipelines.training.loop.fit:fit",
    Kind.ADAPT_DOMAIN: "pipelines.training.loop.fit:fit",
    Kind.ADAPT_TASK: "pipelines.training.loop.fit:fit",
    Kind.FINETUNE: "pipelines.training.loop.fit:fit",
    Kind.COMPRESS: "pipelines.training.loop.fit:fit",
    Kind.EVALUATE: "pipelines.judging.evaluations.stage:evaluate",
    Kind.PROBE: "pipelines.judging.probes.stage:probe",
}
