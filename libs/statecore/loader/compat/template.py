"""``salt.template``: files and texts through the renderers."""

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
    """The data of a file (``:string:``: of ``input_data``) that its ``#!`` line, or ``default``, renders."""
    ctx = context_of("salt.template.compile_template")
    text = input_data if template == ":string:" else Path(template).read_text("utf-8")
    return ctx.templates.data(text, default, kwargs, saltenv=saltenv, source=str(template))


def compile_template_str(template: str, renderers: object, default: str, *_: object, **__: object) -> object:
    """``compile_template`` of a text."""
    return compile_template(":string:", renderers, default, input_data=template)
