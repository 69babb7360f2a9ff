"""Cost of a run apart from its training: a run with nothing to do, and a stage that trains for one step."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from typing import ClassVar

from benchmarks.faults.regime import Checkout, Regime, regime
from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.record import Goal, Measured
from benchmarks.harness.turns import median
from pipelines.lineage.provenance import RECORD

COLD, WARM, FIXED = (
    "cursus run, all cached, no server up",
    "cursus run, all cached, a server up",
    "a stage's fixed cost",
)
CHAIN = "chain"
RECIPE = """\
name: chain
paper: arXiv:1810.04805
stages:
  first:
    kind: pretrain
    corpus: general
    tokenizer: {name: wordpiece, vocab_size: 512}
    backbone:
      name: transformer
      positions: 64
      dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}
    corruption: {name: token_mask, rate: 0.2}
    head: masked_lm
    objective: masked_lm
    strategy: full
    limits: {unknown: 1.0}
    budget: {tokens: 256, batch_tokens: 256, length: 32}
"""
LATER = "  {name}: {{kind: adapt_domain, start: {start}, corpus: domain, budget: {{tokens: 256}}}}\n"


class Orchestration(Benchmark):
    """The checkout, the small dataset and the permanent server are those of the fault campaign."""

    name = "orchestration"
    what = (
        "A small recipe: `cursus run` with everything in the store, with a temporary or a running server; and the time "
        "from one published stage to the next when each trains for one step, which is the cost of a stage beyond its "
        "training."
    )
    slow = True
    goals: ClassVar[tuple[Goal, ...]] = (
        Goal(figure=COLD, at_most=20, unit="s"),
        Goal(figure=WARM, at_most=5, unit="s"),
        Goal(figure=FIXED, at_most=12, unit="s"),
    )

    def measure(self, setting: Setting) -> Measured:
        with regime(setting.work) as prepared:
            checkout = chain(prepared, 3 if setting.quick else 8)
            done(checkout, prepared.server)
            published = sorted(path.stat().st_mtime for path in checkout.store.root.glob(f"[0-9a-f]*/{RECORD}"))
            fixed = [after - before for before, after in pairwise(published)]
            cold: list[float] = []
            warm: list[float] = []
            for _ in range(1 if setting.quick else 5):
                cold.append(done(checkout, None))
                warm.append(done(checkout, prepared.server))
        return Measured(figures=(median(COLD, cold, "s"), median(WARM, warm, "s"), median(FIXED, fixed, "s")))


def chain(prepared: Regime, stages: int) -> Checkout:
    """A checkout with a recipe of `stages` stages, each of which starts from the previous one."""
    folder = prepared.work / CHAIN
    subprocess.run(["cp", "-a", str(prepared.template), str(folder)], check=True)
    checkout = Checkout(folder)
    names = ["first", *(f"stage{number}" for number in range(1, stages))]
    later = "".join(LATER.format(name=name, start=start) for start, name in pairwise(names))
    (checkout.folder / "recipes" / f"{CHAIN}.yaml").write_text(RECIPE + later, encoding="utf-8")
    return checkout


def done(checkout: Checkout, server: str | None) -> float:
    """Seconds of a successful run."""
    settings = {} if server is None else {"PREFECT_API_URL": server}
    ending = checkout.start("run", CHAIN, "--threads", "1", settings=settings).ended()
    assert ending.success, ending.output
    return ending.seconds
