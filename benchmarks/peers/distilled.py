"""Distillation as a competent user of transformers writes it: `python -m benchmarks.peers.distilled ORDER`.

Texts are grouped by length. In the first epoch each batch passes through the frozen teacher, whose logits are kept; the
loss of the student is the KL divergence of the softened distributions (Hinton, Vinyals & Dean 2015, §2). bfloat16 by
autocast, fused AdamW, gradients clipped at 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness.gate import Gate


def main(order: Path) -> int:
    """Train until the measurement ends."""
    import pyarrow.parquet as parquet
    import torch
    from torch.nn.functional import kl_div, log_softmax, softmax
    from torch.utils.data import DataLoader
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        get_linear_schedule_with_warmup,
    )
    from transformers.trainer_pt_utils import LengthGroupedSampler

    settings = json.loads(order.read_bytes())
    gate = Gate()
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(settings["teacher"], trust_remote_code=False)
    teacher = AutoModelForSequenceClassification.from_pretrained(settings["teacher"], trust_remote_code=False)
    layers = teacher.config.num_hidden_layers
    student = AutoModelForSequenceClassification.from_pretrained(
        settings["teacher"], trust_remote_code=False, num_hidden_layers=layers // 2
    )
    teacher.eval()
    student.train()
    texts = parquet.read_table(settings["table"])["text"].to_pylist()
    rows: Any = [
        {**tokenizer(text, truncation=True, max_length=settings["length"]), "number": number}
        for number, text in enumerate(texts)
    ]
    size = settings["rows_a_step"]
    sampler = LengthGroupedSampler(size, lengths=[len(row["input_ids"]) for row in rows])
    loader: Any = DataLoader(
        rows, batch_size=size, sampler=sampler, drop_last=True, collate_fn=DataCollatorWithPadding(tokenizer)
    )
    answers = torch.empty(len(rows), teacher.config.num_labels)
    known = torch.zeros(len(rows), dtype=torch.bool)
    optimizer = torch.optim.AdamW(student.parameters(), lr=settings["lr"], weight_decay=0.01, fused=True)
    schedule = get_linear_schedule_with_warmup(optimizer, settings["steps"] // 10, settings["steps"])
    temperature = settings["temperature"]
    while True:
        for batch in loader:
            gate.step()
            numbers = batch.pop("number")
            with torch.autocast("cpu", torch.bfloat16):
                if not known[numbers].all():
                    with torch.no_grad():
                        answers[numbers] = teacher(**batch).logits.float()
                    known[numbers] = True
                target = softmax(answers[numbers] / temperature, -1)
                outputs = log_softmax(student(**batch).logits.float() / temperature, -1)
                loss = kl_div(outputs, target, reduction="batchmean") * temperature**2
            loss.backward()
            torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
