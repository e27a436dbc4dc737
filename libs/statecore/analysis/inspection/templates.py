"""Check the Jinja templates of a tree, including branches that were not rendered."""

from __future__ import annotations

from collections.abc import Iterator

import jinja2

from statecore.analysis import templates
from statecore.analysis.finding import Finding
from statecore.analysis.inspection.known import nearest_function, salt_function
from statecore.analysis.inspection.places import spot_finding
from statecore.model.errors import SlsError
from statecore.render.jinja.engine import environment
from statecore.runtime.state_runs.state_system import RunParts

_TEMPLATES = (".jinja", ".j2", ".jinja2")


def of_sls(parts: RunParts, sls: str, saltenv: str, *, pillar: bool) -> Iterator[Finding]:
    """Yield the findings in the template of one SLS.

    ``pillar``: also report missing pillar keys. Use it if the pillar is the minion's own and the minion runs this SLS.
    """
    run = parts.run
    try:
        source = run.tree.source(sls, saltenv)
        names = run.tree.names(sls, saltenv)
    except SlsError:
        return
    first = source.text.partition("\n")[0]
    if first.startswith("#!") and "jinja" not in first:
        return
    env = environment(run.tree.files, saltenv, {}, {})
    try:
        tree = env.parse(source.text, source.path)
        # Looking for names finds unknown filters and tests, too.
        undefined = list(templates.undefined_names(tree, env, names))
    except jinja2.TemplateError:
        # Rendering the SLS reports this error.
        return
    spots = [*undefined, *_salt_calls(parts, tree)]
    if pillar and not run.ctx.pillar.get("_errors"):
        spots += templates.undefined_pillar_keys(tree, run.ctx.pillar)
    for spot in spots:
        yield spot_finding(spot, source.shown, source.text, sls)


def of_others(parts: RunParts) -> Iterator[Finding]:
    """Yield the findings of ``statecore check`` in templates that are not SLS files (``.jinja``, ``.j2``, ``.jinja2``)."""
    files = parts.run.tree.files
    for saltenv in files.envs():
        for path in (path for path in files.paths(saltenv) if path.endswith(_TEMPLATES)):
            yield from of_template(parts, path, saltenv)


def of_template(parts: RunParts, path: str, saltenv: str) -> Iterator[Finding]:
    """Yield the findings of ``statecore check`` in one template that is not an SLS file; none if there is no such file.

    Undefined names are not reported there, because the importing template defines them. Unknown functions are.
    """
    files = parts.run.tree.files
    fetched = files.fetch(path, saltenv)
    if fetched is None:
        return
    try:
        text = fetched.read_text("utf-8", "replace")
    except OSError as error:
        spot = templates.Spot("render", f"it cannot be read: {error.strerror}", 0, "", "")
        yield spot_finding(spot, files.shown(fetched), "", "")
        return
    try:
        tree = environment(files, saltenv, {}, {}).parse(text, path)
    except jinja2.TemplateSyntaxError as error:
        spot = templates.Spot("render", f"Jinja syntax error: {error.message}", error.lineno, "", "")
        yield spot_finding(spot, files.shown(fetched), text, "")
        return
    for spot in _salt_calls(parts, tree):
        yield spot_finding(spot, files.shown(fetched), text, "")


def _salt_calls(parts: RunParts, tree: jinja2.nodes.Template) -> Iterator[templates.Spot]:
    return templates.unknown_functions(
        tree, lambda name: salt_function(parts, name), lambda name: nearest_function(parts, name)
    )
