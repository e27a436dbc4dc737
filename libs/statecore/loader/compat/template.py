"""``salt.template`` for users' modules: renders files and texts with Salt's renderers."""

from __future__ import annotations

from pathlib import Path

from statecore.loader.current_context import context_of


def compile_template(
    template: str,
    renderers: object,
    default: str,
    blacklist: object = None,
    whitelist: object = None,
    saltenv: str = "base",
    sls: str = "",
    input_data: str = "",
    **kwargs: object,
) -> object:
    """Return the data that renderers make of a file: the renderers of its ``#!`` line, else those of ``default``
    ("jinja|yaml").

    ``template`` is a path; for ":string:" the text ``input_data`` is rendered. Raise SlsError if the text cannot be
    rendered.
    """
    ctx = context_of("salt.template.compile_template")
    text = input_data if template == ":string:" else Path(template).read_text("utf-8")
    return ctx.templates.data(text, default, kwargs, saltenv=saltenv, source=str(template))


def compile_template_str(template: str, renderers: object, default: str, *_: object, **__: object) -> object:
    """Return the data that renderers make of a text: the renderers of its ``#!`` line, else those of ``default``
    ("jinja|yaml").
    """
    return compile_template(":string:", renderers, default, input_data=template)
