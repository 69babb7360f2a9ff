"""Translation of templates: the i18n extension of Jinja over the sentences of `pipelines.messages`.

    {% trans steps=steps | length %}{{ steps }} steps{% endtrans %}      ─▶  "{steps} steps", and its translation

Jinja writes placeholders of a sentence as `%(steps)s`; in the translations they are `{steps}`, as everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pipelines.messages.translation import LANGUAGES, language, localized, template

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

PLACEHOLDER = re.compile(r"%\((\w+)\)s|%%")
BRACES = re.compile(r"\{(\w+)\}|%")


def translating_environment(loader: BaseLoader | None = None, autoescape: bool = True, **options: Any) -> Environment:
    """A Jinja environment whose templates have `{% trans %}`, `page_language()` and `other_languages(file)`.

    An undefined name in a template is an error. A translated sentence is markup, as the text of a template is; values
    in it are escaped.
    """
    from jinja2 import Environment, StrictUndefined

    pages = Environment(
        loader=loader,
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
        **options,
    )
    pages.policies["ext.i18n.trimmed"] = True
    pages.install_gettext_callables(_translated, _translated_plural, newstyle=True)  # type: ignore[attr-defined]
    pages.globals |= {"page_language": language, "other_languages": other_languages, "localized": localized}
    return pages


def other_languages(file: str) -> list[dict[str, str]]:
    """The same page in the other languages: file name, language, and the language's own name."""
    return [
        {"file": localized(file, name), "language": name, "name": own}
        for name, own in LANGUAGES.items()
        if name != language()
    ]


def template_sentences(environment: Environment, source: str) -> Iterator[str]:
    """The sentences that the template `source` translates."""
    for _, _, arguments in environment.extract_translations(source):  # type: ignore[attr-defined]
        sentence = arguments[0] if isinstance(arguments, tuple) else arguments
        if sentence is not None:  # one that the values of the page hold
            yield _catalogued(sentence)


def _catalogued(sentence: str) -> str:
    """A sentence of a template as the translations have it."""
    return PLACEHOLDER.sub(lambda match: f"{{{match[1]}}}" if match[1] else "%", sentence)


def _translated(sentence: str) -> str:
    return BRACES.sub(lambda match: f"%({match[1]})s" if match[1] else "%%", template(_catalogued(sentence)))


def _translated_plural(one: str, many: str, number: int) -> str:
    return _translated(one if number == 1 else many)
