"""``salt.utils.templates`` for users' modules: functions that render a text with a template engine (JINJA, MAKO)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from statecore.loader.compat.utils.files import mkstemp
from statecore.loader.current_context import context_of
from statecore.model.errors import StatecoreError


def _engine(name: str) -> Callable[..., dict[str, object]]:
    def render(
        tmplsrc: str,
        from_str: bool = False,
        to_str: bool = False,
        context: Mapping[str, object] | None = None,
        tmplpath: object = None,
        **kws: object,
    ) -> dict[str, object]:
        """Render a template and return {"result": True, "data": path of a temporary file with the rendered text}.

        ``tmplsrc`` is a path, or with ``from_str`` the template's text. With ``to_str``, "data" is the rendered text
        itself. On failure "result" is False and "data" the error message.
        """
        ctx = context_of(f"salt.utils.templates.{name.upper()}")
        text = tmplsrc if from_str else Path(tmplsrc).read_text("utf-8")
        names: dict[str, object] = {**(context or {}), **{key: kws[key] for key in ("sls", "saltenv") if key in kws}}
        try:
            made = ctx.templates.render(
                text,
                name,
                names,
                saltenv=str(kws.get("saltenv") or ctx.saltenv),
                source="" if from_str else str(tmplsrc),
            )
        except StatecoreError as error:
            return {"result": False, "data": str(error)}
        if to_str:
            return {"result": True, "data": made}
        path = mkstemp()
        Path(path).write_text(made, "utf-8")
        return {"result": True, "data": path}

    return render


JINJA = _engine("jinja")
MAKO = _engine("mako")

TEMPLATE_REGISTRY: Mapping[str, Callable[..., dict[str, object]]] = {"jinja": JINJA, "mako": MAKO}
