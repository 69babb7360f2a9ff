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
from pipelines.networks.folder import read_json
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.routes import COMPRESS, TEACHER, Route, RoutesOver, fitting, read_routes, with_earlier
from pipelines.serving.runtimes import runtimes_by_name
from pipelines.task_families.labelled_tables import MAIN
from tasks.compression.finished import finished_model
from tasks.datasets.libraries import recipes_for, setting_of_dataset
from tasks.datasets.planning import Request, store_folder
from tasks.datasets.prepared import Prepared
from tasks.models.ancestry import resolve
from tasks.models.default import default_model

SUITE: tuple[Mapping[str, Any], ...] = ({"name": "scores"}, {"name": "saved_size"}, {"name": "served_forms"})
"""What the report of the routes measures, in all runtimes of the machine."""


@dataclass(frozen=True)
class CompressionRequest:
    """A model to compress, and the routes that fit it."""

    request: Request
    fingerprint: str
    title: str
    """The model as it was named, or why it was chosen."""
    folder: Path
    unfit: Mapping[str, str]
    """Route that does not fit the model or its dataset → the reason."""
    named: bool = False
    """Whether the routes were requested by name."""

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
    """The request to compress `model`: a registered model, a stage, the first digits of a fingerprint, or, for None,
    the model that `cursus predict` would use. `named` are routes, all that fit if empty;
    `runtimes` those to measure beside torch, all of the machine if empty.

    Raises CursusError where no route fits, and for an unknown model, dataset, route or runtime.
    """
    store = Store(store_folder(root))
    if model is not None and Path(model).is_dir():
        raise CursusError(
            f"{model}: a folder has neither data nor lineage, which routes train on; compress a model of this project "
            "(a stage, a fingerprint, a registered name). A checkpoint from elsewhere becomes one with a recipe whose "
            "first stage has `start: {checkpoint: ...}`"
        )
    if model is None:
        chosen = default_model(root, store, dataset)
        fingerprint, title = chosen.fingerprint, f"{chosen.why} {chosen.fingerprint[:8]}"
    else:
        fingerprint = resolve(root, store, model)[1]
        title = fingerprint[:8] if fingerprint.startswith(model) else f"{model} {fingerprint[:8]}"
    finished = finished_model(store, fingerprint)
    own = next(iter(finished.steps[TEACHER].data.values())).dataset
    name, settings = dataset or own, load_settings(root)
    if name not in settings:
        raise CursusError(f"params.yaml has no dataset {name!r}, which {title} needs.{did_you_mean(name, settings)}")
    setting = setting_of_dataset(root, name)
    family = finished.steps[TEACHER].family.name
    if name != own and setting.family != family:
        raise CursusError(f"{title} answers {family}, and the task of {name} is {setting.family}; choose other --data")
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
        raise CursusError(f"no route fits {title}. {_reasons(unfit)}")
    request = Request(name, COMPRESS, (), False, {}, reduces=True, routes=RoutesOver(finished, tuple(fits), suite))
    return CompressionRequest(request, fingerprint, title, store.folder(fingerprint), unfit, bool(named))


def _reasons(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{route}: {reason}" for route, reason in reasons.items())


def check_labels(compression: CompressionRequest, prepared: Prepared) -> None:
    """Raise CursusError where the dataset has classes of texts that the model does not know."""
    routes = compression.request.routes
    assert routes is not None
    model = routes.model
    if model.corpus != [MAIN] or not model.steps[TEACHER].family.is_single_text:
        return
    named = read_json(compression.folder / "config.json").get("id2label") or {}
    known, given = set(map(str, named.values())), set(prepared.labels)
    if known and not given <= known:
        raise CursusError(
            f"{compression.title} knows the classes {', '.join(sorted(known))}, and the dataset {prepared.name} has "
            f"{', '.join(sorted(given - known))}; choose a dataset of the same task with --data"
        )
