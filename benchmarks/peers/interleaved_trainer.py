"""transformers' Trainer in a separate thread, which trains only during its turns."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

    from pipelines.training.batches.token_stream import TokenStream


class Blocks:
    """Concatenated documents with end tokens, cut into rows of one length regardless of document boundaries
    (run_mlm.py)."""

    def __init__(self, stream: TokenStream, length: int) -> None:
        self.tokens, self.length = stream.tokens, length

    def __len__(self) -> int:
        return len(self.tokens) // self.length

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.tokens[index * self.length : (index + 1) * self.length].astype(np.int64)}


class InterleavedTrainer:
    """Masked-LM training by the Trainer: bf16, sdpa and torch_compile on CUDA, float32 elsewhere."""

    def __init__(
        self,
        weights: dict[str, Tensor],
        config: PretrainedConfig,
        tokenizer: PreTrainedTokenizerFast,
        stream: TokenStream,
        rows: int,
        length: int,
        rate: float,
        lr: float,
        out: Path,
        cuda: bool,
    ) -> None:
        from copy import deepcopy

        from transformers import (
            AutoModelForMaskedLM,
            DataCollatorForLanguageModeling,
            Trainer,
            TrainerCallback,
            TrainingArguments,
        )

        plain = deepcopy(config)
        plain._attn_implementation = "sdpa"
        network = AutoModelForMaskedLM.from_config(plain)
        network.load_state_dict(weights)
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._left, self._ends = 0, False
        self.loss = float("nan")
        self._failed: BaseException | None = None
        outer = self

        class Turns(TrainerCallback):
            def on_step_begin(self, *_: Any, **__: Any) -> None:
                if outer._left == 0:
                    outer._go.acquire()

            def on_step_end(self, args: Any, state: Any, control: Any, **__: Any) -> None:
                outer._left -= 1
                control.should_training_stop = outer._ends
                if outer._left == 0:
                    outer._synchronised()

            def on_log(
                self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **__: Any
            ) -> None:
                outer.loss = (logs or {}).get("loss", outer.loss)

        settings: dict[str, Any] = {"bf16": True, "torch_compile": True} if cuda else {"use_cpu": True}
        self._cuda = cuda
        arguments = TrainingArguments(
            output_dir=str(out / "trainer"), per_device_train_batch_size=rows, max_steps=10**6, learning_rate=lr,
            lr_scheduler_type="constant", optim="adamw_torch_fused", max_grad_norm=1.0, save_strategy="no",
            report_to=[],
            logging_steps=5, disable_tqdm=True, dataloader_num_workers=6 if cuda else 0, dataloader_drop_last=True,
            **settings,
        )  # fmt: skip
        collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=rate)
        trainer = Trainer(network, arguments, collator, Blocks(stream, length), callbacks=[Turns()])
        self._thread = threading.Thread(target=self._train, args=(trainer,), daemon=True)
        self._thread.start()

    def _train(self, trainer: Any) -> None:
        try:
            trainer.train()
        except BaseException as error:
            self._failed = error
        self._done.release()

    def _synchronised(self) -> None:
        if self._cuda:
            import torch

            torch.cuda.synchronize()
        self._done.release()

    def take(self, steps: int) -> float:
        """Train for `steps` steps; returns the seconds they took. Raises the Trainer's exceptions."""
        begun = time.perf_counter()
        self._left = steps
        self._go.release()
        self._done.acquire()
        if self._failed is not None:
            raise self._failed
        return time.perf_counter() - begun

    def end(self) -> None:
        """End training after one more step."""
        self._ends = True
        self.take(1)
        self._thread.join()
