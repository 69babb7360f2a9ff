"""Recipe, Stage and their parts: strict values, every key documented, none ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, PositiveInt, SerializeAsAny, field_validator, model_validator

from pipelines.judging.evaluations import Evaluation
from pipelines.judging.probes import Probe
from pipelines.parts.backbones import Backbone
from pipelines.parts.compressions import Compression
from pipelines.parts.corruptions import Corruption
from pipelines.parts.heads import Head
from pipelines.parts.layouts import Layout
from pipelines.parts.objectives import Objective
from pipelines.parts.schedules import Schedule
from pipelines.parts.segmentations import Segmentation
from pipelines.parts.strategies import Strategy
from pipelines.parts.tokenizers import Tokenizer
from pipelines.recipe.kinds import Kind
from pipelines.recipe.starts import Checkpoint, Untrained
from pipelines.recipe.strict import StrictModel


class Budget(StrictModel):
    """How much a stage computes."""

    tokens: int | None = Field(None, ge=0)
    """Tokens to train on (plain text), padding included. 0 only takes the start over."""
    epochs: float | None = Field(None, gt=0)
    """Passes over the corpus; the largest number of them when `patience` is set."""
    batch_tokens: PositiveInt = 8192
    """Tokens in a batch of plain text."""
    grains: PositiveInt = 8
    """Parts of a batch of plain text that are corrupted each by itself: so many ranks, or accumulated steps, can share it."""
    batch_texts: PositiveInt = 32
    """Texts in a batch of a labelled task."""
    labelled: PositiveInt | None = None
    """Labelled examples to train on, drawn by the seed, one of each label first; None for all there are."""
    length: PositiveInt = 128
    """Tokens in a sequence; longer texts of a task are cut."""
    patience: PositiveInt | None = None
    """Validations without improvement after which fine-tuning stops."""

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        if self.tokens is not None and self.epochs is not None:
            raise ValueError("give tokens or epochs, not both")
        return self


class NewWords(StrictModel):
    """Words of the stage's own corpus that are added to the vocabulary it starts from."""

    tokens: PositiveInt
    """Words to add, at most: those that take the most tokens together, beyond one each."""
    sample_bytes: PositiveInt = 20_000_000
    """UTF-8 bytes of text that they are looked for in."""


class TokenizerLimits(StrictModel):
    """What a tokenizer must not exceed on the text of a stage; it is told before anything trains, and changes no result."""

    unknown: float | None = Field(None, ge=0, le=1)
    """Share of tokens that stand for what the tokenizer does not know; None leaves what is usual for its kind."""
    fertility: float | None = Field(None, gt=0)
    """Tokens for each word, in languages without spaces for each character."""


class Optimizer(StrictModel):
    """AdamW (Loshchilov & Hutter 2019) and its numerics."""

    lr: float = Field(5e-4, gt=0)
    """Peak learning rate."""
    weight_decay: float = Field(0.01, ge=0)
    betas: tuple[float, float] = (0.9, 0.98)
    clip: float = Field(1.0, gt=0)
    """Largest global gradient norm."""
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"
    """`auto` is bf16 autocast where the processor or GPU computes in bf16, else float32."""


def _as_list(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) or value is None else [value]


class Stage(StrictModel):
    """One stage, as written in a recipe and after inheritance."""

    kind: Kind
    start: str | tuple[str, ...] | Checkpoint | Untrained | None = None
    """The stage (or `recipe/stage`) whose result this one continues; for `evaluate` and `probe`, the stages they look at."""
    teacher: str | None = None
    """The stage whose result teaches this one."""
    like: str | None = None
    """Take every key not given here from this stage."""
    corpus: tuple[Literal["general", "domain", "task_text", "task"], ...] = ()
    tokenizer: SerializeAsAny[Tokenizer] | None = None
    vocabulary: NewWords | None = None
    """Words to add to the tokenizer of the start."""
    limits: TokenizerLimits = TokenizerLimits()
    segmentation: SerializeAsAny[Segmentation] | None = None
    """Where words begin, for corruptions that treat a word as one thing."""
    layout: SerializeAsAny[Layout] = Field(default_factory=Layout.usually)
    """How plain text is laid out in rows."""
    backbone: SerializeAsAny[Backbone] | None = None
    corruption: tuple[SerializeAsAny[Corruption], ...] = ()
    head: SerializeAsAny[Head] | None = None
    objective: tuple[SerializeAsAny[Objective], ...] = ()
    strategy: tuple[SerializeAsAny[Strategy], ...] = ()
    """Which parameters train, at which rate, when; several apply in order."""
    schedule: SerializeAsAny[Schedule] = Field(default_factory=Schedule.usually)
    """How the learning rate moves over the steps."""
    compression: tuple[SerializeAsAny[Compression], ...] = ()
    suite: tuple[SerializeAsAny[Evaluation], ...] = ()
    probes: tuple[SerializeAsAny[Probe], ...] = ()
    """What a `probe` stage looks for in hidden states."""
    budget: Budget = Budget()
    optimizer: Optimizer = Optimizer()
    dropout: float | None = Field(None, ge=0, lt=1)
    """Rate of every dropout while this stage trains; None leaves what the backbone's configuration says."""
    seeds: tuple[int, ...] = (0,)
    """One model is trained for each; stages that start from this one take the first."""

    @field_validator(
        "corpus", "corruption", "objective", "strategy", "compression", "suite", "probes", "seeds", mode="before"
    )
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return _as_list(value)

    @field_validator("start", mode="before")
    @classmethod
    def _tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @property
    def trains(self) -> bool:
        return bool(self.objective) and self.budget.tokens != 0


class Claim(StrictModel):
    """What a system is known for, as something to be measured: one stage against another, all else equal."""

    says: str
    """The claim in one sentence."""
    published: str
    """The paper's own figure, and where it stands there: a fact to compare with."""
    system: str
    """The stage that should be better."""
    baseline: str
    """The stage it is compared with, on the same data and seeds."""
    data: str
    """The dataset of params.yaml it was chosen for."""
    metric: str | None = None
    """A metric of the dataset's task family; None for its first."""
    at_least: float = 0.0
    """The claim holds when the difference lies above this: 0 for "better", −0.01 for "within a point"."""
    seeds: PositiveInt = 5
    """Models trained of each of the two stages."""


class Recipe(StrictModel):
    """A published system, or a user's own: named stages over shared parts."""

    name: str
    paper: str = ""
    """`arXiv:…` or `doi:…` of the system."""
    settings: dict[str, Any] = {}
    """The paper's own settings, as facts to compare with; nothing reads them but the catalogue."""
    stages: Annotated[dict[str, Stage], Field(min_length=1)]
    claims: dict[str, Claim] = {}
    """By name; `cursus claim` measures one."""
