"""Check what the lines of a stage have in common: their mixing, and one backbone for all of their heads."""

from __future__ import annotations

import re

from pipelines.models.opening import serve_together
from pipelines.parts.mixing import Mixing
from pipelines.recipe.kinds import Kind
from pipelines.recipe.lines import line_views
from pipelines.recipe.problems import Problem, listed
from pipelines.recipe.schema import Stage
from pipelines.vocabulary import Ability

_NAME = re.compile(r"[A-Za-z][\w-]*")


def check_lines(stage: Stage) -> Problem | None:
    """First problem of the lines of `stage` together; each of them is checked as a stage of its own."""
    if not stage.lines:
        return (
            ("mixing", "a mixing orders lines, and this stage has none; give lines, or remove mixing")
            if (stage.mixing is not None)
            else None
        )
    if stage.kind.judges or stage.kind is Kind.COMPRESS:
        return "lines", f"a {stage.kind} stage has no lines; give them to the stage that trains, before it"
    for name in stage.lines:
        if not _NAME.fullmatch(name):
            return "lines", f"{name!r} is no name of a line: use letters, digits, '_' and '-', a letter first"
    if (unclear := _check_names(stage)) is not None:
        return unclear
    mixing = stage.mixing or Mixing.default()
    if problem := mixing.conflict(tuple(stage.lines), in_epochs=stage.budget.epochs is not None):
        return "mixing", f"{mixing.name} {problem}"
    return _check_kinds(stage) or _check_heads(stage)


def _check_names(stage: Stage) -> Problem | None:
    """Check that no line has the name of another line's task: either may select a task."""
    corpora = {name: view.corpus for name, view in line_views(stage).items()}
    for name, corpus in corpora.items():
        others = [other for other in corpora if corpus == (other,) and corpora[other] != corpus]
        if others:
            return (
                f"lines.{name}.corpus",
                f"is {others[0]!r}, which is also the name of another line, so that --task {others[0]} could mean "
                f"either; name this line {others[0]}, or that one after its own corpus",
            )
    return None


def _check_kinds(stage: Stage) -> Problem | None:
    """Check that a stage answers tasks if it is a finetune stage, and only then: others rely on its kind."""
    labelled = [name for name, view in line_views(stage).items() if view.head is not None and view.head.reads]
    if stage.kind.reads_plain_text and labelled:
        return (
            f"lines.{labelled[0]}.head",
            f"reads labelled examples, but a {stage.kind} stage reads plain text; make the stage a finetune stage, "
            "whose other lines may still read plain text",
        )
    if not stage.kind.reads_plain_text and not labelled:
        return "lines", "a finetune stage answers a task: give one line a task and a head that reads it"
    return None


def _check_heads(stage: Stage) -> Problem | None:
    """Check that heads can stand on one backbone: those of an encoder-decoder cannot."""
    views = line_views(stage)
    heads = [view.head for view in views.values() if view.head is not None]
    if len(heads) < len(views):
        return None
    if serve_together(heads):
        extending = next((one.name for one in stage.strategy if one.extends_lines), None)
        if extending is None:
            return None
        return (
            "strategy",
            f"{extending} adds modules to the network of each line, and one network serves these lines: their heads "
            f"({heads[0].name}) are equal and answer no task; give the lines heads of their own, or leave {extending} "
            "out",
        )
    for name, view in views.items():
        if view.head is not None and Ability.ENCODER_DECODER in view.head.needs_abilities:
            others = listed({head.name for head in heads if head != view.head} or {view.head.name})
            return (
                f"lines.{name}.head",
                f"{view.head.name} is a whole encoder-decoder, on which no other head can stand ({others}); give every "
                f"line the head {view.head.name}, or every line a head of a single stack",
            )
    return None
