"""Finding 38.1: each place that renders a template gives it data and closed callables: SLS files, top files, pillar, file
templates, functions that render, and external pillars.

A template gets further than data if its text, or the error that it causes, shows an object of the engine.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from statecore.builtin.ext_pillar import stack
from statecore.model.errors import StatecoreError
from statecore.pillar.saltclass import node_of
from statecore.runtime.runtime import Runtime, local_runtime

#: Words that only the engine's own objects and modules show.
INSIDE = (
    "<statecore.",
    "&lt;statecore.",
    "<module",
    "__builtins__",
    "Context(",
    "functools.partial(",
    "'__name__'",
    "PosixPath(",
    "got-in",
)

#: Attack -> template. SALT is the table of functions, OPTS the options.
ATTACKS: Mapping[str, str] = {
    "a function's argument": "{{ SALT['pillar.get'].args[0].host }}",
    "a function's argument, by get": "{{ SALT.get('pillar.get').args[0].host }}",
    "a function's argument, by attr": "{{ (SALT['pillar.get']|attr('args'))[0].host }}",
    "a function's argument, by map": "{{ [SALT['pillar.get']]|map(attribute='args.0.host')|list }}",
    "a function's argument, by format": "{{ '{0.args[0].host}'.format(SALT['pillar.get']) }}",
    "a command": "{{ SALT['pillar.get'].args[0].host.run('echo got-in').stdout }}",
    "a command by another function": "{{ SALT['pillar.get'].args[0].functions['cmd.run']('echo got-in') }}",
    "a function that is called by call": "{{ SALT['pillar.get'].args[0].call('test.echo', 'got-in') }}",
    "another function by the Context": "{{ SALT['pillar.get'].args[0].functions['test.echo']('got-' ~ 'in') }}",
    "a file": "{{ SALT['pillar.get'].args[0].host.root.joinpath('FILE').read_text() }}",
}

#: Place -> its name of the table of functions.
TABLES = {"a layer of stack": "__salt__", "saltclass": "__salt__"}


class Places:
    """The places that render templates, for one minion in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("tree", "pillar", "classes/classes", "classes/nodes"):
            (directory / name).mkdir(parents=True)
        (directory / "file").write_text("got-in")

    def runtime(self) -> Runtime:
        opts = {
            "id": "web1",
            "file_roots": {"base": [str(self.directory / "tree")]},
            "pillar_roots": {"base": [str(self.directory / "pillar")]},
            "cachedir": str(self.directory / "cache"),
            "pillar_safe_render_error": False,
        }
        return local_runtime(opts, grains={"id": "web1"}, pillar=None)

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        return path

    def sls(self, template: str) -> object:
        """Return the data of an SLS."""
        self.write("tree/a.sls", f"a: |\n  {template}\n")
        return self.runtime().run_parts({}).run.tree.render("a", "base").high

    def imported(self, template: str) -> object:
        """Return the data of an SLS that imports a template."""
        self.write("tree/m.jinja", f"{{% macro m() %}}{template}{{% endmacro %}}")
        self.write("tree/a.sls", "{% from 'm.jinja' import m with context %}a: |\n  {{ m() }}\n")
        return self.runtime().run_parts({}).run.tree.render("a", "base").high

    def stateconf(self, template: str) -> object:
        """Return the data of an SLS of the renderer stateconf."""
        self.write("tree/a.sls", f"#!stateconf yaml . jinja\na:\n  test.nop:\n    - name: |\n        {template}\n")
        return self.runtime().run_parts({}).run.tree.render("a", "base").high

    def top(self, template: str) -> object:
        """Return the top file's references."""
        self.write("tree/top.sls", f"base:\n  '*':\n    - |\n      {template}\n")
        return self.runtime().run_parts({}).run.tree.top()

    def pillar(self, template: str) -> object:
        """Return the minion's pillar."""
        self.write("pillar/top.sls", "base: {'*': [a]}\n")
        self.write("pillar/a.sls", f"a: |\n  {template}\n")
        return dict(self.runtime().pillar)

    def file(self, template: str) -> object:
        """Return the text of a managed file."""
        return self.runtime().context.templates.render(template, "jinja", {}, saltenv="base")

    def function(self, template: str) -> object:
        """Return the result of a function that renders a text."""
        return self.runtime().context.call("slsutil.renderer", string=f"a: |\n  {template}\n")

    def layer(self, template: str) -> object:
        """Return the data of a layer of the external pillar stack."""
        self.write("layer.yml", f"a: |\n  {template}\n")
        return stack.ext_pillar(self.runtime().context, "web1", {}, str(self.write("stack.cfg", "layer.yml\n")))

    def saltclass(self, template: str) -> object:
        """Return the pillar of saltclass, whose files are templates."""
        self.write("classes/nodes/web1.yml", f"pillars:\n  a: |\n    {template}\n")
        ctx = self.runtime().context
        path = str(self.directory / "classes")
        return node_of(path, "web1", {}, opts=ctx.opts, grains=ctx.grains, functions=ctx.functions).pillar


PLACES: Mapping[str, Callable[[Places, str], object]] = {
    "an SLS": Places.sls,
    "an imported template": Places.imported,
    "stateconf": Places.stateconf,
    "a top file": Places.top,
    "pillar": Places.pillar,
    "a managed file": Places.file,
    "slsutil.renderer": Places.function,
    "a layer of stack": Places.layer,
    "saltclass": Places.saltclass,
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("place", PLACES)
def test_no_place_shows_a_template_more_than_data(tmp_path: Path, place: str, attack: str) -> None:
    template = ATTACKS[attack].replace("SALT", TABLES.get(place, "salt")).replace("FILE", str(tmp_path / "file"))
    try:
        found = PLACES[place](Places(tmp_path), template)
    except StatecoreError as error:
        # An error quotes the template itself.
        found = str(error).partition("\n---")[0]
    # The template itself has the word in quotes.
    text = json.dumps(found, default=str).replace("'got-in'", "").replace("echo got-in", "")
    assert [word for word in INSIDE if word in text] == []


@pytest.mark.ordinary
@pytest.mark.parametrize("place", PLACES)
def test_each_place_calls_functions(tmp_path: Path, place: str) -> None:
    template = "{{ SALT['test.echo']('rendered') }}".replace("SALT", TABLES.get(place, "salt"))
    try:
        found = PLACES[place](Places(tmp_path), template)
    except StatecoreError as error:
        found = str(error)
    assert "rendered" in json.dumps(found, default=str)


#: Place -> template that changes the engine's options.
CHANGING = {
    "a managed file": "{% do opts.file_roots.base.append('/') %}",
    "an SLS": "{% do opts.file_roots.base.append('/') %}",
    "a top file": "{% do opts.file_roots.base.append('/') %}",
    "pillar": "{% do opts.file_roots.base.append('/') %}",
    "stateconf": "{% do opts.file_roots.base.append('/') %}",
    "a layer of stack": "{% do __opts__.file_roots.base.append('/') %}",
    "saltclass": "{{ __opts__.file_roots.base.append('/') }}",
}


@pytest.mark.parametrize("place", CHANGING)
def test_no_place_lets_a_template_change_the_options(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Places(tmp_path)
    runtime = places.runtime()
    monkeypatch.setattr(places, "runtime", lambda: runtime)
    before = json.dumps(runtime.opts["file_roots"])
    # The rest of the file may make no sense.
    with contextlib.suppress(StatecoreError):
        PLACES[place](places, CHANGING[place])
    assert json.dumps(runtime.opts["file_roots"]) == before
    assert json.dumps(runtime.context.opts["file_roots"]) == before
