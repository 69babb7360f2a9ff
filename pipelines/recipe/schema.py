"""Schema of a recipe: Recipe, Stage and their settings. Every key is documented; unknown keys are refused."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, SerializeAsAny, field_validator, model_validator
from pydantic_core import PydanticCustomError

from pipelines.judging.evaluations import Evaluation
from pipelines.judging.probes import Probe
from pipelines.parts.annotations import Annotation
from pipelines.parts.attention import AttentionPattern
from pipelines.parts.backbones import Backbone
from pipelines.parts.compressions import Compression
from pipelines.parts.corruptions import Corruption
from pipelines.parts.estimates import Estimation
from pipelines.parts.heads import Head
from pipelines.parts.knowledge import Knowledge
from pipelines.parts.layouts import Layout
from pipelines.parts.mixing import Mixing
from pipelines.parts.objectives import Objective
from pipelines.parts.optimizers import Optimizer
from pipelines.parts.schedules import Schedule
from pipelines.parts.segmentations import Segmentation
from pipelines.parts.strategies import Strategy
from pipelines.parts.tokenizers import Tokenizer
from pipelines.recipe.augmentations import Augmentation
from pipelines.recipe.claim import AT_KEY, Claim
from pipelines.recipe.features import FeatureSource
from pipelines.recipe.kinds import Kind
from pipelines.recipe.lines import Line, TeacherVocabulary
from pipelines.recipe.starts import Checkpoint, Untrained, two_starts
from pipelines.recipe.strict import StrictModel, as_list

CALIBRATION = 16
VALIDATION = 10_000
MOST_TOKENS = 10**14
"""More than the largest training runs on record: a larger budget is a slip of the hand."""
MOST_IN_A_BATCH = 10**8
MOST_LABELLED = 10**8
MOST_SEEDS = 1000


class Budget(StrictModel):
    """How much a stage computes: amount of training data, batch sizes, sequence length."""

    tokens: int | None = Field(None, ge=0, le=MOST_TOKENS)
    """Tokens of plain text to train on, padding included. 0: no training, the result is the start itself."""
    epochs: float | None = Field(None, gt=0, le=100_000)
    """Passes over the corpus; an upper bound when `patience` is set."""
    batch_tokens: int = Field(8192, gt=0, le=MOST_IN_A_BATCH)
    """Tokens in a batch of plain text."""
    corruption_shards: int = Field(8, gt=0, le=65_536)
    """Independently corrupted slices of a batch of plain text; ranks · accumulation steps must divide their number."""
    batch_texts: int = Field(32, gt=0, le=1_000_000)
    """Examples in a batch of a labelled task."""
    labelled: int | None = Field(None, gt=0, le=MOST_LABELLED)
    """Labelled examples to train on, drawn by the seed, at least one of each label; None: all."""
    length: int = Field(128, gt=0, le=1_000_000)
    """Tokens in a sequence; longer texts of a task are truncated."""
    patience: int | None = Field(None, gt=0, le=MOST_LABELLED)
    """Early stopping: validations without improvement after which fine-tuning ends; None: no early stopping."""
    calibration: int = Field(CALIBRATION, ge=0, le=MOST_LABELLED, exclude_if=lambda batches: batches == CALIBRATION)
    """Batches of the corpus that a compression sees, if it needs any."""
    validation: int = Field(VALIDATION, gt=0, le=MOST_LABELLED, exclude_if=lambda examples: examples == VALIDATION)
    """Held-out examples of a task on which an epoch is judged: of a larger table a sample, drawn by the seed, which is
    the same in each epoch. The scores of the finished stage are those of the whole table."""

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        if self.tokens is not None and self.epochs is not None:
            raise ValueError("give tokens or epochs, not both")
        return self


class NewWords(StrictModel):
    """Words of the stage's corpus that are added to the vocabulary of its start."""

    tokens: int = Field(gt=0, le=MOST_LABELLED)
    """Largest number of words to add; preferred are those that would save the most tokens over the corpus."""
    sample_bytes: int = Field(20_000_000, gt=0, le=MOST_TOKENS)
    """UTF-8 bytes of text in which words are counted."""


class TokenizerLimits(StrictModel):
    """Limits for a tokenizer on the text of a stage, checked before training; they change no result."""

    unknown: float | None = Field(None, ge=0, le=1)
    """Largest share of unknown tokens; None: the default of the kind of tokenizer."""
    fertility: float | None = Field(None, gt=0, le=1_000_000)
    """Largest number of tokens per word (per character in languages written without spaces); None: no limit."""


class Stage(StrictModel):
    """One stage, as written in a recipe and after inheritance."""

    kind: Kind
    start: str | tuple[str, ...] | Checkpoint | Untrained | None = None
    """Stage (or `recipe/stage`) whose result this one continues; for `evaluate` and `probe`, the stages they
    measure."""
    head_start: str | None = Field(None, exclude_if=lambda value: value is None)
    """The stage whose head this one continues, where that is another; written `start: {backbone: <stage>, head:
    <stage>}`."""
    teacher: str | None = None
    """Stage whose result is the teacher, for distillation."""
    teacher_vocabulary: TeacherVocabulary | None = Field(None, exclude_if=lambda value: value is None)
    """How a teacher of another vocabulary reads: the student's rows over the tokens that both have, or rows of its own
    tokens of the same examples; None: it must have the same vocabulary."""
    like: str | None = None
    """Stage from which every key that is not given here is inherited."""
    corpus: tuple[str, ...] = ()
    """What this stage reads: general, domain, task_text, task, or further corpora and tasks that the dataset names."""
    texts: tuple[str, ...] = Field((), exclude_if=lambda value: not value)
    """Columns of the corpus whose texts, one after the other, are a document of plain text, such as a sentence and its
    translation; without: its column `text`."""
    tokenizer: SerializeAsAny[Tokenizer] | None = None
    vocabulary: NewWords | None = None
    """Words to add to the vocabulary of the start."""
    limits: TokenizerLimits = TokenizerLimits()
    segmentation: SerializeAsAny[Segmentation] | None = None
    """Where words begin, for corruptions that treat a word as one unit."""
    annotations: tuple[SerializeAsAny[Annotation], ...] = Field((), exclude_if=lambda value: not value)
    """What is known of each token alongside its id: its language, its box on a page."""
    layout: SerializeAsAny[Layout] = Field(default_factory=Layout.default)
    """How documents of plain text are laid out in rows."""
    backbone: SerializeAsAny[Backbone] | None = None
    features: tuple[FeatureSource, ...] = Field((), exclude_if=lambda value: not value)
    """Stages whose networks this one reads as its input, frozen or not; their vectors are put side by side."""
    corruption: tuple[SerializeAsAny[Corruption], ...] = ()
    attention: SerializeAsAny[AttentionPattern] | None = Field(None, exclude_if=lambda value: value is None)
    """Which tokens of a row attend to which; None: what the backbone does by itself."""
    knowledge: SerializeAsAny[Knowledge] | None = Field(None, exclude_if=lambda value: value is None)
    """Facts to inject into the labelled examples, where the attention pattern reads them."""
    augmentation: tuple[Augmentation, ...] = Field((), exclude_if=lambda value: not value)
    """Changes of the labelled training examples, of all lines, that leave their answers right, drawn anew in every
    epoch; several apply in order."""
    head: SerializeAsAny[Head] | None = None
    objective: tuple[SerializeAsAny[Objective], ...] = ()
    lines: dict[str, Line] = Field({}, exclude_if=lambda value: not value)
    """Name → what is trained on one backbone, each with data, head and objectives of its own; without lines, the stage
    itself is the only one."""
    mixing: SerializeAsAny[Mixing] | None = Field(None, exclude_if=lambda value: value is None)
    """Which line each optimizer step trains; None: proportional to the size of their data."""
    strategy: tuple[SerializeAsAny[Strategy], ...] = ()
    """Which parameters train, at which learning rate, when; several strategies apply in order."""
    estimate: SerializeAsAny[Estimation] | None = Field(None, exclude_if=lambda value: value is None)
    """Estimates the backbone from counts of the corpus, in place of an objective and a strategy."""
    schedule: SerializeAsAny[Schedule] = Field(default_factory=Schedule.default)
    """Learning rate as a function of the optimizer step."""
    compression: tuple[SerializeAsAny[Compression], ...] = ()
    suite: tuple[SerializeAsAny[Evaluation], ...] = ()
    probes: tuple[SerializeAsAny[Probe], ...] = ()
    """Probes that a `probe` stage trains on hidden states."""
    budget: Budget = Budget()
    optimizer: SerializeAsAny[Optimizer] = Field(default_factory=Optimizer.default)
    """Rule of the steps, its rate, clipping and precision; AdamW where no name is given."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Rate of all dropout layers during this stage; None: as in the backbone's configuration."""
    seeds: tuple[int, ...] = (0,)
    """Seeds: one model is trained for each; stages that start from this one use the first."""

    @field_validator(
        "corpus",
        "texts",
        "annotations",
        "features",
        "corruption",
        "augmentation",
        "objective",
        "strategy",
        "compression",
        "suite",
        "probes",
        "seeds",
        mode="before",
    )
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return as_list(value)

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if not seeds:
            raise ValueError("a stage needs at least one seed")
        if len(seeds) > MOST_SEEDS:
            raise ValueError(f"{len(seeds):,} seeds are more than {MOST_SEEDS:,}, each of which trains a model")
        outside = [seed for seed in seeds if not 0 <= seed < 2**32]
        if outside:
            raise ValueError(f"{outside[0]} is no seed: use whole numbers from 0 to {2**32 - 1:,}")
        twice = sorted({seed for seed in seeds if seeds.count(seed) > 1})
        if twice:
            raise ValueError(f"seed {twice[0]} is given twice and would train the same model twice; keep one")
        return seeds

    @model_validator(mode="before")
    @classmethod
    def _two_starts(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "head_start" in value:
            raise ValueError("head_start has no key of its own: write start: {backbone: <stage>, head: <stage>}")
        try:
            two = two_starts(value.get("start"))
        except ValueError as error:
            raise PydanticCustomError(AT_KEY, "{message}", {"message": str(error), "key": "start"}) from None
        return value if two is None else {**value, "start": two.backbone, "head_start": two.head}

    @field_validator("start", mode="before")
    @classmethod
    def _tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @property
    def trains(self) -> bool:
        """Whether the stage updates weights."""
        objective = self.objective or any(line.objective for line in self.lines.values())
        return bool(objective) and self.budget.tokens != 0

    @property
    def differentiated(self) -> tuple[Objective, ...]:
        """The objectives whose loss a compression can measure: those of the network alone, without a teacher, another
        companion or parameters of their own."""
        return tuple(
            one
            for one in self.objective
            if not one.needs_teacher and not one.companion_heads and type(one).build is Objective.build
        )

    @property
    def draws(self) -> bool:
        """Whether the result depends on the seed."""
        estimated = self.estimate is not None and self.estimate.draws
        return self.trains or estimated or any(one.draws for one in self.compression)


class Recipe(StrictModel):
    """A published system, or a user's own: named stages over shared parts."""

    name: str = Field(pattern=r"^[A-Za-z][\w.-]*$", max_length=100)
    """Letters, digits, '_', '-' and '.', a letter first: reports and records are files of this name."""
    description: str = Field("", pattern=r"^[^\r\n]*$", max_length=100)
    """What the recipe trains or compares, in one line: `cursus recipes` lists it."""
    paper: str = ""
    """`arXiv:…` or `doi:…` of the system; authors, year, title and venue of a paper that has neither."""
    systems: tuple[str, ...] = ()
    """Published systems that the recipe implements, with every defining part: ids of recipes/systems.yaml."""
    system_stages: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """System → the stages that are it; needed where a recipe has several. Without: the stages that claims call so."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the paper, for comparison only: nothing is computed from them."""
    stages: Annotated[dict[str, Stage], Field(min_length=1)]
    claims: dict[str, Claim] = Field(default_factory=dict)
    """Name → claim; `cursus claim` measures one."""
    others: dict[str, Stage] = Field(default_factory=dict, exclude=True)
    """Stages of other recipes that claims compare, as `recipe/stage`: resolved when a recipe is loaded, not written.
    Only their seeds reach the plan."""

    @field_validator("systems", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return as_list(value)

    @field_validator("system_stages", mode="before")
    @classmethod
    def _stages_listed(cls, value: Any) -> Any:
        return {key: as_list(one) for key, one in value.items()} if isinstance(value, dict) else value

    def compared(self, reference: str) -> Stage:
        """The stage that a claim names: one of its own, or `recipe/stage`. Raises KeyError for any other."""
        return self.others[reference] if "/" in reference else self.stages[reference]
