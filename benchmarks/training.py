"""One masked-LM training step of the default body: ours, and the Hugging Face Trainer's as its own example script runs
it.

Both see the same rows of the same text with the same share of masked tokens, in one process, in turns, with the same
threads and precision. Ours has the vocabulary projection over masked positions only and plain attention; theirs has its
defaults.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

ROUNDS, STEPS, LENGTH, BATCH = 3, 40, 64, 64


def measure(root: Path) -> tuple[float, float]:
    """Median tokens a second, ours and the Trainer's."""
    from pipelines.corpora.documentation import documentation
    from pipelines.recipe.load import Library

    stage = Library(root / "recipes").load("bert").stages["general"]
    texts = [text for text, _ in islice(documentation("general"), 20_000)]
    assert stage.tokenizer is not None and stage.backbone is not None
    tokenizer = stage.tokenizer.train(texts[:5000])
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(_ours(stage, tokenizer, texts))
        theirs.append(_trainer(stage, tokenizer, texts))
    return median(ours), median(theirs)


def _ours(stage: Any, tokenizer: Any, texts: list[str]) -> float:
    import pytorch_lightning as lightning

    from pipelines.corruptions.token_mask import TokenMask
    from pipelines.objectives.masked_lm import MaskedLM
    from pipelines.training.assemble import assemble
    from pipelines.training.hardware import precision
    from pipelines.training.module import StageModule
    from pipelines.training.reporting import MetricsLog
    from pipelines.training.windows import PlainBatches, TokenStream

    folder = Path(tempfile.mkdtemp())
    stage = stage.model_copy(update={"objective": (MaskedLM(),)})
    stream = TokenStream.encode(texts, tokenizer, None, 0)
    batches = PlainBatches(stream, tokenizer, [TokenMask(rate=0.2)], rows=BATCH, length=LENGTH, steps=STEPS, seed=0)
    network = assemble(stage, None, tokenizer, [], "cpu")
    module = StageModule(stage, network, {}, batches, MetricsLog(folder / "metrics.jsonl", 20, BATCH * LENGTH))
    trainer = lightning.Trainer(
        accelerator="cpu",
        precision=precision(),
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    begun = time.monotonic()
    trainer.fit(module, batches)
    seconds = time.monotonic() - begun
    shutil.rmtree(folder)
    return STEPS * BATCH * LENGTH / seconds


def _trainer(stage: Any, tokenizer: Any, texts: list[str]) -> float:
    import torch
    from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling, Trainer, TrainingArguments

    from pipelines.training.hardware import precision
    from pipelines.training.windows import PlainBatches, TokenStream
    from pipelines.vocabulary import Field

    stream = TokenStream.encode(texts, tokenizer, None, 0)
    rows = PlainBatches(stream, tokenizer, [], rows=BATCH, length=LENGTH, steps=STEPS, seed=0)
    examples = [
        {"input_ids": torch.from_numpy(row)} for step in range(STEPS) for row in rows.batch(step)[Field.INPUT_IDS]
    ]
    network = AutoModelForMaskedLM.from_config(stage.backbone.config(tokenizer, LENGTH))
    folder = tempfile.mkdtemp()
    trainer = Trainer(
        network,
        TrainingArguments(
            folder,
            per_device_train_batch_size=BATCH,
            max_steps=STEPS,
            bf16=precision() == "bf16-mixed",
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            logging_steps=20,
            disable_tqdm=True,
        ),
        train_dataset=examples,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.2),
    )
    begun = time.monotonic()
    trainer.train()
    seconds = time.monotonic() - begun
    shutil.rmtree(folder)
    return STEPS * BATCH * LENGTH / seconds
