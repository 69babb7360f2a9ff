"""Identity of named tasks and corpora in the pin: nothing where a dataset has none, so that its pin does not change."""

from __future__ import annotations

from typing import Any

from pipelines.corpora.settings.dataset import DatasetSettings
from pipelines.corpora.settings.task import Task
from pipelines.lineage.source import source_hash
from pipelines.task_families.labelled_tables import MAIN


def further_tasks(settings: DatasetSettings) -> dict[str, Task]:
    """The labelled tasks besides the main one."""
    return {name: task for name, task in settings.labelled.items() if name != MAIN}


def family_identity(task: Task) -> dict[str, Any]:
    """Options and code of a task's family."""
    # members of a family are looked up by name, so that no import leads to their code
    return task.family.model_dump() | {"code": source_hash(type(task.family).__module__)}


def limits_of(task: Task) -> dict[str, Any]:
    """How many labelled examples of a task are kept."""
    return {"labels_per_class": task.labels_per_class, "labelled_examples": task.labelled_examples}


def families_identity(settings: DatasetSettings) -> dict[str, Any]:
    """Families of the further tasks, and the name of the main one."""
    if not settings.tasks:
        return {}
    families = {name: family_identity(task) for name, task in further_tasks(settings).items()}
    return {"families": families, "main": settings.main_name}


def columns_identity(settings: DatasetSettings) -> dict[str, Any]:
    """Declared columns of the corpora."""
    columns = {name: corpus.columns for name, corpus in settings.corpora.items()}
    return {"corpora": columns} if columns else {}


def named_identity(settings: DatasetSettings) -> dict[str, Any]:
    """Settings of the further tasks and corpora that decide what is collected."""
    identity: dict[str, Any] = {}
    if tasks := further_tasks(settings):
        identity["tasks"] = {name: task.model_dump(exclude=set(limits_of(task))) for name, task in tasks.items()}
    if settings.corpora:
        identity["corpora"] = {name: corpus.model_dump() for name, corpus in settings.corpora.items()}
    return identity


def named_limits(settings: DatasetSettings) -> dict[str, Any]:
    """How many labelled examples of the further tasks are kept."""
    limits = {name: limits_of(task) for name, task in further_tasks(settings).items()}
    return {"tasks": limits} if limits else {}


def named_licences(settings: DatasetSettings) -> dict[str, Any]:
    """Licences of the further tasks."""
    licences = {name: task.licence for name, task in further_tasks(settings).items()}
    return {"tasks": licences} if licences else {}
