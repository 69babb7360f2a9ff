"""A request to compress a model: the routes that fit it, as a request over its dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipelines.components import did_you_mean
from pipelines.corpora.settings.dataset import load_settings
from pipelines.errors import CursusError
from pipelines.lineage.store import Store
from pipelines.messages.translation import message
from pipelines.networks.folder import read_json
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.routes import (
    COMPRESS,
    TEACHER,
    FinishedModel,
    Route,
    RoutesOver,
    fitting,
    read_routes,
    with_earlier,
)
from pipelines.serving.runtimes import runtimes_by_name
from pipelines.task_families.labelled_tables import MAIN
from tasks.compression.finished import finished_model, uncompressed
from tasks.compression.foreign import FAMILIES, ForeignClassifier, is_foreign
from tasks.datasets.libraries import recipes_for, setting_of_dataset
from tasks.datasets.planning import Request, resolve_request, store_folder
from tasks.datasets.prepared import Prepared
from tasks.models.ancestry import label, resolve
from tasks.models.default import default_model

SUITE: tuple[Mapping[str, Any], ...] = ({"name": "scores"}, {"name": "saved_size"}, {"name": "served_forms"})
"""What the report of the routes measures, in all runtimes of the machine."""


@dataclass(frozen=True)
class ModelToCompress:
    """The model that is to become smaller."""

    finished: FinishedModel
    title: str
    """The model as it was named, or why it was chosen."""
    dataset: str
    folder: Path
    reference: str
    """What names it in another process: its fingerprint, or its folder."""
    foreign: ForeignClassifier | None = None
    """The same, if it was trained elsewhere."""


@dataclass(frozen=True)
class CompressionRequest:
    """A model to compress, and the routes that fit it."""

    request: Request
    model: ModelToCompress
    unfit: Mapping[str, str]
    """Route that does not fit the model or its dataset → the reason."""
    named: bool = False
    """Whether the routes were requested by name."""

    @property
    def title(self) -> str:
        return self.model.title

    @property
    def fingerprint(self) -> str:
        """The model's in the store, or the digest of a folder from elsewhere."""
        return self.model.finished.fingerprint

    @property
    def routes(self) -> tuple[Route, ...]:
        assert self.request.routes is not None
        return self.request.routes.routes

    def only(self, routes: Sequence[Route]) -> CompressionRequest:
        """The same request with some of its routes, in the order of all."""
        assert self.request.routes is not None
        kept = tuple(one for one in self.routes if one in routes)
        return replace(self, request=replace(self.request, routes=replace(self.request.routes, routes=kept)))

    def without(self, reasons: Mapping[str, str]) -> CompressionRequest:
        """The same request without some of its routes, and why. A route that another one continues stays.

        Raises CursusError where none is left.
        """
        known = {one.name: one for one in self.routes}
        kept = [one for route in self.routes if route.name not in reasons for one in with_earlier(route, known)]
        if not kept:
            raise CursusError(f"no route makes {self.title} smaller. {_reasons(reasons)}; name one with --route")
        gone = {name: why for name, why in reasons.items() if known[name] not in kept}
        return replace(self.only(kept), unfit={**self.unfit, **gone})


def compression_request(
    root: Path,
    model: str | None,
    dataset: str | None = None,
    named: Sequence[str] = (),
    runtimes: Sequence[str] = (),
) -> CompressionRequest:
    """The request to compress `model`: a registered model, a stage, the first digits of a fingerprint, the folder of a
    Hugging Face classifier, or, for None, the model that `cursus predict` would use, before it was compressed. `named`
    are routes, all that fit if empty; `runtimes` those to measure beside torch, all of the machine if empty.

    Raises CursusError where no route fits, for an unknown model, dataset, route or runtime, and for a folder that holds
    no classifier that routes can start from.
    """
    foreign = model is not None and is_foreign(model)
    chosen = _folder(root, str(model), dataset) if foreign else _stored(root, model, dataset)
    finished, name = chosen.finished, chosen.dataset
    setting = setting_of_dataset(root, name)
    known = read_routes(RecipeFolders.of_project(root))
    for one in named:
        if one not in known:
            raise CursusError(f"there is no route {one!r}.{did_you_mean(one, known)}")
    requested = {one.name: one for each in named or known for one in with_earlier(known[each], known)}
    for one in runtimes:
        if one not in (served := runtimes_by_name()):
            raise CursusError(f"there is no runtime {one!r}.{did_you_mean(one, served)}")
    suite = (*SUITE[:-1], {**SUITE[-1], "runtimes": list(runtimes)}) if runtimes else SUITE
    fits, unfit = fitting(finished, requested, recipes_for(root, name), setting, suite)
    if not fits:
        raise CursusError(f"no route fits {chosen.title}. {_reasons(unfit)}")
    request = Request(name, COMPRESS, (), False, {}, reduces=True, routes=RoutesOver(finished, tuple(fits), suite))
    return CompressionRequest(request, chosen, unfit, bool(named))


def _stored(root: Path, model: str | None, dataset: str | None) -> ModelToCompress:
    """A model of this project."""
    store = Store(store_folder(root))
    if model is None:
        chosen = default_model(root, store, dataset)
        whole = uncompressed(store, chosen.fingerprint)
        fingerprint, title = whole.fingerprint, f"{chosen.why} {chosen.fingerprint[:8]}"
        if fingerprint != chosen.fingerprint:
            title = message(
                "{stage} {fingerprint}, which {title} was compressed from",
                stage=label(whole), fingerprint=fingerprint[:8], title=title,
            )  # fmt: skip
    else:
        fingerprint = resolve(root, store, model)[1]
        title = fingerprint[:8] if fingerprint.startswith(model) else f"{model} {fingerprint[:8]}"
    finished = finished_model(store, fingerprint)
    own = next(iter(finished.steps[TEACHER].data.values())).dataset
    name, settings = dataset or own, load_settings(root)
    if name not in settings:
        raise CursusError(f"params.yaml has no dataset {name!r}, which {title} needs.{did_you_mean(name, settings)}")
    family, other = finished.steps[TEACHER].family.name, setting_of_dataset(root, name).family
    if name != own and other != family:
        raise CursusError(f"{title} answers {family}, and the task of {name} is {other}; choose other --data")
    return ModelToCompress(finished, title, name, store.folder(fingerprint), fingerprint)


def _folder(root: Path, model: str, dataset: str | None) -> ModelToCompress:
    """A classifier that was trained elsewhere."""
    foreign = ForeignClassifier.read(model)
    name = resolve_request(root, dataset, None, (), smoke=False).dataset
    family = setting_of_dataset(root, name).family
    if family not in FAMILIES:
        raise CursusError(
            f"{model} answers the classification of texts or of pairs, and the task of {name} is {family}; choose "
            "other --data"
        )
    return ModelToCompress(foreign.model(), model, name, foreign.folder, str(foreign.folder), foreign)


def _reasons(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{route}: {reason}" for route, reason in reasons.items())


def for_labels(compression: CompressionRequest, prepared: Prepared, root: Path) -> CompressionRequest:
    """The same request, on the classes that the prepared dataset has: those of a model from elsewhere in their order.

    Raises CursusError where the dataset has classes of texts that the model does not know.
    """
    model, routes = compression.model, compression.request.routes
    assert routes is not None
    if model.foreign is not None:
        finished = model.foreign.in_order(prepared.labels, root)
        request = replace(compression.request, routes=replace(routes, model=finished))
        return replace(compression, request=request, model=replace(model, finished=finished))
    finished = model.finished
    if finished.corpus != [MAIN] or not finished.steps[TEACHER].family.is_single_text:
        return compression
    named = read_json(model.folder / "config.json").get("id2label") or {}
    known, given = set(map(str, named.values())), set(prepared.labels)
    if known and not given <= known:
        raise CursusError(
            f"{compression.title} knows the classes {', '.join(sorted(known))}, and the dataset {prepared.name} has "
            f"{', '.join(sorted(given - known))}; choose a dataset of the same task with --data"
        )
    return compression
