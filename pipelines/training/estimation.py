"""Compute a stage that is estimated by counting: tokenizer ▸ token stream ▸ counts ▸ Hugging Face folder.

After a kill, the next attempt continues with the units of work that are missing in the job's scratch folder; the model
folder is written at the end. One process writes, and its units of work run in as many as the job has threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.corpora.engines.work import run_units
from pipelines.lineage.results import SCRATCH, Result
from pipelines.models.opening import ModelRecord, build_network, open_tokenizer
from pipelines.parts.estimates import CountingUnit, TokenFile, Workspace
from pipelines.training.assembly.fertility import check_tokenizer
from pipelines.training.batches.reading_texts import read_beginning
from pipelines.training.batches.special_tokens import end_of_document, texts_of
from pipelines.training.batches.token_shards import token_stream
from pipelines.training.batches.token_stream import TOKENS
from pipelines.training.ranks import process_group

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.recipe.job import Job

COUNTED = "counts"
"""Folder inside SCRATCH with what is counted so far."""


def estimate(job: Job) -> Result:
    """Compute a stage that is estimated by counting, and write its model folder into `job.out`.

    Raises RecipeError for a tokenizer that does not suit the text, DataError for a text without documents.
    """
    from transformers.utils import logging as transformers_logging

    if process_group.rank() > 0:
        return Result()
    stage = job.stage
    assert stage.estimate is not None and stage.backbone is not None and stage.head is not None
    tokenizer, tables = _tokenizer(job), {name: job.tables[name] for name in stage.corpus}
    measured = check_tokenizer(stage, job.stage_name, tables, tokenizer, job.language)
    cache, threads = job.cache or job.out / SCRATCH / "tokens", job.runtime.threads
    stream = token_stream(list(tables.values()), tokenizer, None, stage.budget.tokens, cache, threads, (), stage.texts)
    text = TokenFile(
        path=stream.folder / TOKENS,
        kind=stream.tokens.dtype.name,
        counts=tuple(stream.counts.tolist()),
        end=end_of_document(tokenizer),
        special=tuple(sorted(tokenizer.all_special_ids)),
        texts=texts_of(tokenizer),
    )
    config = stage.backbone.config(tokenizer, stage.budget.length)

    def run(units: Sequence[CountingUnit], home: Path) -> Sequence[Path]:
        return run_units(units, home, threads)

    workspace = Workspace(job.out / SCRATCH / COUNTED, run, job.seed)
    workspace.folder.mkdir(parents=True, exist_ok=True)
    weights = stage.estimate.weights(text, config, workspace)
    network = _network(job, config, weights)
    network.config._attn_implementation = None
    transformers_logging.disable_progress_bar()
    network.save_pretrained(job.out)
    tokenizer.model_max_length = stage.budget.length
    tokenizer.save_pretrained(job.out)
    values = sum(tensor.numel() for tensor in network.state_dict().values())
    return Result(metrics=measured, tokens=len(stream.tokens), parameters=values)


def _tokenizer(job: Job) -> PreTrainedTokenizerFast:
    """The tokenizer of the start, or one trained on the beginning of the corpora."""
    if job.start is not None:
        return open_tokenizer(job.start)
    chosen = job.stage.tokenizer
    assert chosen is not None
    texts = [job.tables[name] for name in job.stage.corpus]
    return chosen.train(read_beginning(texts, getattr(chosen, "sample_bytes", math.inf)))


def _network(job: Job, config: PretrainedConfig, weights: dict[str, NDArray[Any]]) -> PreTrainedModel:
    """The head of the stage on a backbone with the estimated `weights`; all others are random, by the seed."""
    import torch

    assert job.stage.head is not None and job.stage.estimate is not None
    torch.manual_seed(job.seed)
    network = build_network(ModelRecord(head=job.stage.head), config)
    job.stage.estimate.set_weights(network, weights)
    network.eval()
    return network
