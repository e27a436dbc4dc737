"""Check the Jinja templates of a tree, including branches that were not rendered."""

from __future__ import annotations

from collections.abc import Iterator

import jinja2

from statecore.analysis import templates
from statecore.analysis.finding import Finding
from statecore.analysis.inspection.known import nearest_function, salt_function
from statecore.analysis.inspection.places import spotted
from statecore.model.errors import SlsError
from statecore.render.jinja.engine import environment
from statecore.runtime.state_runs.state_system import RunParts

_TEMPLATES = (".jinja", ".j2", ".jinja2")


def of_sls(bench: RunParts, sls: str, saltenv: str, *, pillar: bool) -> Iterator[Finding]:
    """Yield the findings in the template of one SLS.

    ``pillar``: also report missing pillar keys. Use it if the pillar is the minion's own and the minion runs this SLS.
    """
    stage = bench.stage
    try:
        source = stage.tree.source(sls, saltenv)
        names = stage.tree.names(sls, saltenv)
    except SlsError:
        return
    first = source.text.partition("\n")[0]
    if first.startswith("#!") and "jinja" not in first:
        return
    env = environment(stage.tree.files, saltenv, {}, {})
    try:
        tree = env.parse(source.text, source.path)
    except jinja2.TemplateError:
        # Rendering the SLS reports this error.
        return
    spots = [*templates.undefined_names(tree, env, names), *_salt_calls(bench, tree)]
    if pillar and not stage.ctx.pillar.get("_errors"):
        spots += templates.undefined_pillar_keys(tree, stage.ctx.pillar)
    for spot in spots:
        yield spotted(spot, source.shown, source.text, sls)


def of_others(bench: RunParts) -> Iterator[Finding]:
    """Yield the findings in templates that are not SLS files (``.jinja``, ``.j2``, ``.jinja2``).

    Undefined names are not reported there, because the importing template defines them. Unknown functions are.
    """
    files = bench.stage.tree.files
    for saltenv in files.envs():
        env = environment(files, saltenv, {}, {})
        for path in (path for path in files.paths(saltenv) if path.endswith(_TEMPLATES)):
            fetched = files.fetch(path, saltenv)
            if fetched is None:
                continue
            try:
                text = fetched.read_text("utf-8", "replace")
            except OSError as error:
                spot = templates.Spot("render", f"it cannot be read: {error.strerror}", 0, "", "")
                yield spotted(spot, files.shown(fetched), "", "")
                continue
            try:
                tree = env.parse(text, path)
            except jinja2.TemplateSyntaxError as error:
                spot = templates.Spot("render", f"Jinja syntax error: {error.message}", error.lineno, "", "")
                yield spotted(spot, files.shown(fetched), text, "")
                continue
            for spot in _salt_calls(bench, tree):
                yield spotted(spot, files.shown(fetched), text, "")


def _salt_calls(bench: RunParts, tree: jinja2.nodes.Template) -> Iterator[templates.Spot]:
    return templates.unknown_functions(
        tree, lambda name: salt_function(bench, name), lambda name: nearest_function(bench, name)
    )
