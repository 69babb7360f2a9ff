"""transformers' Trainer as its example scripts use it: `python -m benchmarks.peers.trainer ORDER`.

ORDER is JSON: a task of `TASKS`, the folder of the initial model, the table of text, and settings. Text is tokenised
and grouped into blocks as in run_mlm.py and run_clm.py (`datasets.map`, twice), or tokenised text by text as in
run_classification.py; training is in bfloat16 (`bf16=True`). The optimizer's settings are those of the other side; when
losses are compared, each step's learning rate is as well (`rates`, multiples of `lr`), and the model is saved to the
folder `leave`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.harness.gate import Gate

LOG_EVERY = 5


def blocks(settings: dict[str, Any], tokenizer: Any, special: bool) -> Any:
    """Documents tokenised, joined and cut into blocks of the same length (run_mlm.py, run_clm.py)."""
    import datasets

    length = settings["length"]

    def tokenise(examples: dict[str, list[str]]) -> Any:
        return tokenizer(examples["text"], return_special_tokens_mask=special)

    def group(examples: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        joined = {name: list(chain(*values)) for name, values in examples.items()}
        total = len(joined["input_ids"]) // length * length
        return {name: [values[at : at + length] for at in range(0, total, length)] for name, values in joined.items()}

    raw = datasets.Dataset.from_parquet(settings["table"], cache_dir=settings["cache"], columns=["text"])
    return raw.map(tokenise, batched=True, remove_columns=["text"]).map(group, batched=True)


def masked(settings: dict[str, Any], tokenizer: Any) -> tuple[Any, Any, Any]:
    from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling

    model = AutoModelForMaskedLM.from_pretrained(settings["model"], trust_remote_code=False, **_attention(settings))
    data = blocks(settings, tokenizer, special=True)
    return model, data, DataCollatorForLanguageModeling(tokenizer, mlm_probability=settings["rate"])


def masked_rows(settings: dict[str, Any], tokenizer: Any) -> tuple[Any, Any, Any]:
    """run_mlm.py's model and collator, on given rows of tokens."""
    import datasets
    from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling

    model = AutoModelForMaskedLM.from_pretrained(settings["model"], trust_remote_code=False, **_attention(settings))
    rows = json.loads(Path(settings["rows"]).read_bytes())
    data = datasets.Dataset.from_dict({"input_ids": rows})
    return model, data, DataCollatorForLanguageModeling(tokenizer, mlm_probability=settings["rate"])


def causal(settings: dict[str, Any], tokenizer: Any) -> tuple[Any, Any, Any]:
    from transformers import AutoModelForCausalLM, default_data_collator

    model = AutoModelForCausalLM.from_pretrained(settings["model"], trust_remote_code=False, **_attention(settings))
    data = blocks(settings, tokenizer, special=False)
    return model, data.map(lambda row: {"labels": row["input_ids"]}), default_data_collator


def permuted(settings: dict[str, Any], tokenizer: Any) -> tuple[Any, Any, Any]:
    """run_plm.py's data collator, which samples a permutation for each row."""
    from transformers import DataCollatorForPermutationLanguageModeling, XLNetLMHeadModel

    model = XLNetLMHeadModel.from_pretrained(settings["model"])
    data = blocks(settings, tokenizer, special=False).select_columns(["input_ids"])
    return model, data, DataCollatorForPermutationLanguageModeling(tokenizer)


def spans(settings: dict[str, Any], tokenizer: Any) -> tuple[Any, Any, Any]:
    """T5 on rows that are already corrupted, because transformers has a pre-training script only for Flax."""
    import datasets
    from transformers import AutoModelForSeq2SeqLM, default_data_collator

    model = AutoModelForSeq2SeqLM.from_pretrained(settings["model"], trust_remote_code=False, **_attention(settings))
    rows = json.loads(Path(settings["rows"]).read_bytes())
    return model, datasets.Dataset.from_dict(rows), default_data_collator


def classified(settings: dict[str, Any], tokenizer: Any) -> tuple[Any, Any, Any]:
    """Texts with labels, padded batch by batch (run_classification.py with pad_to_max_length=False)."""
    import datasets
    from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding

    raw = datasets.Dataset.from_parquet(settings["table"], cache_dir=settings["cache"], columns=["text", "label"])
    number = {label: index for index, label in enumerate(sorted(set(raw["label"])))}
    data = raw.map(
        lambda rows: {
            **tokenizer(rows["text"], truncation=True, max_length=settings["length"]),
            "labels": [number[label] for label in rows["label"]],
        },
        batched=True,
        remove_columns=["text", "label"],
    )
    model = AutoModelForSequenceClassification.from_pretrained(
        settings["model"], trust_remote_code=False, num_labels=len(number), **_attention(settings)
    )
    return model, data, DataCollatorWithPadding(tokenizer)


TASKS: dict[str, Callable[[dict[str, Any], Any], tuple[Any, Any, Any]]] = {
    "masked": masked,
    "masked_rows": masked_rows,
    "causal": causal,
    "permuted": permuted,
    "spans": spans,
    "classified": classified,
}


def _attention(settings: dict[str, Any]) -> dict[str, Any]:
    return {"attn_implementation": settings["attention"]} if settings.get("attention") else {}


def main(order: Path) -> int:
    """Train until the measurement ends."""
    from transformers import AutoTokenizer, Trainer, TrainerCallback, TrainingArguments, set_seed

    settings = json.loads(order.read_bytes())
    gate, curve = Gate(), Path(settings["curve"])
    set_seed(settings["seed"])
    tokenizer = AutoTokenizer.from_pretrained(settings["model"], trust_remote_code=False)
    model, data, collator = TASKS[settings["task"]](settings, tokenizer)

    class Waits(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            gate.step()

        def on_log(self, args: Any, state: Any, control: Any, **keywords: Any) -> None:
            if "loss" in (logs := keywords["logs"]):
                with curve.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([state.global_step, float(logs["loss"])]) + "\n")

    arguments = TrainingArguments(
        output_dir=settings["cache"],
        use_cpu=True,
        bf16=True,
        max_steps=settings["steps"],
        per_device_train_batch_size=settings["rows_a_step"],
        learning_rate=settings["lr"],
        weight_decay=0.01,
        adam_beta2=0.98,
        adam_epsilon=1e-6,
        warmup_steps=settings["warmup"],
        lr_scheduler_type="linear",
        logging_steps=LOG_EVERY,
        seed=settings["seed"],
        report_to="none",
        **settings.get("arguments", {}),
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        data_collator=collator,
        train_dataset=data,
        processing_class=tokenizer,
        callbacks=[Waits()],
    )
    if "rates" in settings:
        from torch.optim.lr_scheduler import LambdaLR

        rates = [*settings["rates"], 0.0]  # LambdaLR evaluates it once more after the last step
        trainer.lr_scheduler = LambdaLR(trainer.create_optimizer(), lambda step: rates[step])
    trainer.train()
    if "leave" in settings:
        trainer.save_model(settings["leave"])
    gate.end()
    return 0


def read_curve(path: Path, tokens: int) -> Sequence[tuple[int, float]]:
    """(tokens, loss) of each line; a step reads `tokens` tokens."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [(int(step) * tokens, loss) for step, loss in map(json.loads, lines)]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
