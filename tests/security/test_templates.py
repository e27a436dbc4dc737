"""Finding 38.1 and 38.2: templates that reach functions, files or options beyond what the minion's options allow.

A template sees data and closed callables. Each template of ``REACHING`` is tried twice: on a minion whose option
``whitelist_modules`` names three modules, and in the editor, which does not trust the tree.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from statecore.lsp.rendering import Session
from statecore.lsp.settings import Settings
from statecore.model.errors import StatecoreError
from statecore.runtime.runtime import Runtime, local_runtime

SECRET = "hunter2-of-the-machine"

#: Words that only the engine's own objects and modules show.
INSIDE = (
    "<statecore.",
    "<module",
    "__builtins__",
    "Context(",
    "functools.partial(",
    "{'__name__'",
    "<function ",
    "PosixPath(",
)

FUN = "salt['pillar.get']"
CTX = f"{FUN}.args[0]"

#: Attack -> template. MARKER: a file that a command would make. SECRETS: a file of the machine, outside the host's root.
REACHING: Mapping[str, str] = {
    # ------------------------------------------------- the Context that a function is bound to
    "the arguments of a function": "{{ FUN.args }}",
    "the first argument": "{{ CTX }}",
    "by get": "{{ salt.get('pillar.get').args[0].host }}",
    "by attributes": "{{ salt.pillar.get.args[0].host }}",
    "by the items of the table": "{% for name, fun in salt.items() if name == 'pillar.get' %}{{ fun.args[0].host }}{% endfor %}",
    "by the values of the table": "{% for fun in salt.values() %}{{ fun.args }}{% endfor %}",
    "by a subscript": "{{ FUN['args'][0]['host'] }}",
    "by the filter attr": "{{ (FUN|attr('args'))[0]|attr('host') }}",
    "by first": "{{ FUN.args|first }}",
    "by list": "{{ FUN.args|list }}",
    "by a namespace": "{% set n = namespace(f=FUN) %}{{ n.f.args[0].host }}",
    "by a map": "{{ dict(f=FUN)['f'].args[0].host }}",
    "by an ordered map": "{{ odict([('f', FUN)]).f.args[0].host }}",
    "by an argument of a macro": "{% macro m(f) %}{{ f.args[0].host }}{% endmacro %}{{ m(FUN) }}",
    "by the caller": "{% macro m() %}{{ caller(FUN) }}{% endmacro %}{% call(f) m() %}{{ f.args[0].host }}{% endcall %}",
    "by varargs": "{% macro m() %}{{ varargs[0].args[0].host }}{% endmacro %}{{ m(FUN) }}",
    "by kwargs": "{% macro m() %}{{ kwargs.f.args[0].host }}{% endmacro %}{{ m(f=FUN) }}",
    "by a cycler": "{{ cycler(FUN).next().args[0].host }}",
    "by a cycler's current": "{{ cycler(FUN).current.args[0].host }}",
    "by a loop": "{% for f in [FUN] %}{{ f.args[0].host }}{% endfor %}",
    "by the loop's neighbours": "{% for f in [FUN, 1] %}{{ (loop.previtem|default(FUN)).args[0].host }}{% endfor %}",
    "by with": "{% with f = FUN %}{{ f.args[0].host }}{% endwith %}",
    "by a default": "{{ (nothing|default(FUN)).args[0].host }}",
    "by a condition": "{{ (FUN if true else none).args[0].host }}",
    "by the function that it wraps": "{{ FUN.func }}",
    "its keywords": "{{ FUN.keywords.update(a=1) }}{{ FUN.args }}",
    # ------------------------------------------------- by filters that read attributes
    "map": "{{ [FUN]|map(attribute='args')|list }}",
    "map of a path": "{{ [FUN]|map(attribute='args.0.host')|list }}",
    "map of a path to a command": "{% for run in [FUN]|map(attribute='args.0.host.run') %}{{ run('touch MARKER') }}{% endfor %}",
    "map by the filter attr": "{{ [FUN]|map('attr', 'args')|list }}",
    "sum": "{{ [FUN]|sum(attribute='args', start=()) }}",
    "groupby": "{% for key, _ in [FUN]|groupby('args.0.host.root') %}{{ [key] }}{% endfor %}",
    "sort": "{% for f in [FUN]|sort(attribute='args.0.host.root') %}{{ f.args[0].host }}{% endfor %}",
    "min": "{{ [FUN]|map(attribute='args.0.host.root')|list }}",
    "join": "{{ [FUN]|join('', attribute='args') }}",
    "selectattr": "{{ ([FUN]|selectattr('args.0.host')|first).args }}",
    "a format": "{{ '{0.args}'.format(FUN) }}",
    "a format of a path": "{{ '{0.args[0].host}'.format(FUN) }}",
    "a format by keyword": "{{ '{f.args[0].host}'.format(f=FUN) }}",
    "a format with a conversion": "{{ '{0.args[0].host!r}'.format(FUN) }}",
    "format_map": "{{ '{f.args[0].host}'.format_map({'f': FUN}) }}",
    "a format of markup": "{{ ('{0.args[0].host}'|escape).format(FUN)|replace('&lt;', '<') }}",
    "format_map of markup": "{{ ('{f.args[0].host}'|escape).format_map({'f': FUN})|replace('&lt;', '<') }}",
    "a format by map": "{{ ['{0.args[0].host}']|map('method_call', 'format', FUN)|list }}",
    # ------------------------------------------------- calls outside of the sandbox
    "method_call of format": "{{ '{0.__globals__}'|method_call('format', cycler.reset) }}",
    "method_call of format, of a global": "{{ '{0.__globals__}'|method_call('format', lipsum) }}",
    "method_call of format, of range": "{{ '{0.__globals__}'|method_call('format', range) }}",
    "method_call of format, of a function": "{{ '{0.__wrapped__}'|method_call('format', FUN) }}",
    "method_call of format, of the table": "{{ '{0._functions}'|method_call('format', salt) }}",
    "method_call of format, of a macro": "{% macro m() %}{% endmacro %}{{ '{0._func.__globals__}'|method_call('format', m) }}",
    "method_call of format, of the template": ""
    "{{ '{0._TemplateReference__context.environment.loader}'|method_call('format', self) }}",
    "method_call of format_map": "{{ '{f.__globals__}'|method_call('format_map', {'f': lipsum}) }}",
    "method_call of format, by map": "{{ ['{0.__globals__}']|map('method_call', 'format', lipsum)|list }}",
    "method_call of format, of markup": "{{ ('{0.__globals__}'|escape)|method_call('format', lipsum)|replace('&lt;', '<') }}",
    "method_call of a method of the Context": "{{ CTX|method_call('call', 'cmd.run', 'touch MARKER') }}",
    "method_call of a command": "{{ CTX.host|method_call('run', 'touch MARKER') }}",
    "a key of min": "{{ ['touch MARKER']|min(key=CTX.host.run) }}",
    "a key of max": "{{ ['touch MARKER', 'true']|max(key=CTX.host.run) }}",
    # ------------------------------------------------- what the Context has
    "a command by the host": "{{ CTX.host.run('touch MARKER') }}",
    "a command by the functions": "{{ CTX.functions['cmd.run']('touch MARKER') }}",
    "a command by call": "{{ CTX.call('cmd.run', 'touch MARKER') }}",
    "a command by a state": "{{ CTX.states['cmd.run']('touch MARKER') }}",
    "a command by Python": "{% set text = '#!py\\nimport os\\ndef run():\\n    os.mknod(\"MARKER\")\\n    return {}' %}"
    "{{ CTX.functions['slsutil.renderer'](string=text) }}",
    "a command by a template of Python": "{% set text = 'def run():\\n    open(\"MARKER\", \"w\")\\n    return \"\"' %}"
    "{{ CTX.templates.render(text, 'py', {}, saltenv='base') }}",
    "a file's text": "{{ CTX.host.root.joinpath('SECRETS').read_text() }}",
    "a file's lines": "{{ CTX.host.root.joinpath('SECRETS').open().readlines() }}",
    "a file's bytes": "{{ CTX.host.root.joinpath('SECRETS').read_bytes() }}",
    "a written file": "{{ CTX.host.root.joinpath('MARKER').write_text('x') }}",
    "a made file": "{{ CTX.host.root.joinpath('MARKER').touch() }}",
    "a made directory": "{{ CTX.host.root.joinpath('MARKER').mkdir() }}",
    "a link": "{{ CTX.host.root.joinpath('MARKER').symlink_to('/') }}",
    "a directory's files": "{{ CTX.host.root.parent.iterdir()|list }}",
    "the tables": "{{ CTX.tables.attach }}",
    "the loader": "{{ CTX.catalog }}",
    "the minion": "{{ CTX.minion }}",
    "the files": "{{ CTX.files }}",
    "the state system": "{{ [CTX.state_system] }}",
}  # fmt: skip

#: Attacks of ``REACHING`` that run a program of the host, which is an empty directory in the editor, or that need the
#: whole table of functions.
ON_MINIONS = frozenset(
    {
        "by the values of the table",
        "map of a path to a command",
        *(f"method_call of {what}" for what in ("a method of the Context", "a command")),
        *(f"a key of {name}" for name in ("min", "max")),
        *(f"a command by {what}" for what in ("the host", "the functions", "call", "a state")),
    }
)

#: How a template gives itself other limits.
OPENED: Mapping[str, str] = {
    "update": "{% do opts.update({'host_root': '/'}) %}",
    "update by keyword": "{% do opts.update(host_root='/') %}",
    "pop": "{% do opts.pop('host_root') %}",
    "clear": "{% do opts.clear() %}",
    "set": "{% set opts = {'host_root': '/'} %}",
    "an empty set": "{% set opts = {} %}",
    "an ordered map": "{% set opts = odict([('host_root', '/')]) %}",
    "set from itself": "{% set opts = dict(opts, host_root='/') %}",
    "a filter that sets a key": "{% do opts|set_dict_key_value('host_root', '/') %}",
    "method_call": "{% do opts|method_call('update', {'host_root': '/'}) %}",
    "method_call by map": "{% do [opts]|map('method_call', 'update', {'host_root': '/'})|list %}",
    "the function's dict": "{% do CTX.opts.update({'host_root': '/'}) %}",
}

#: Filter or statement that looks at the machine -> template that shows it.
LOOKING: Mapping[str, str] = {
    "file_hashsum": "{{ 'SECRETS'|file_hashsum }}",
    "is_text_file": "{{ 'SECRETS'|is_text_file }}",
    "is_bin_file": "{{ 'BINARY'|is_bin_file }}",
    "is_empty": "{{ 'NOTHING'|is_empty }}",
    "list_files": "{{ 'FOLDER'|list_files|select('match', '.*secrets')|list|length }}",
    "which": "{{ 'PROGRAM'|which }}",
    "get_uid": "{{ 'root'|get_uid }}",
    "include": "{% include 'SECRETS' %}",
    "import_text": "{% import_text 'SECRETS' as text %}{{ text }}",
    "import_yaml": "{% import_yaml 'SECRETS' as text %}{{ text }}",
    "import": "{% import 'SECRETS' as text %}{{ text }}",
}

#: What the template of ``LOOKING`` shows if it saw the machine's file.
SEEN: Mapping[str, str] = {
    "file_hashsum": hashlib.sha256(SECRET.encode()).hexdigest(),
    **dict.fromkeys(("is_text_file", "is_bin_file", "is_empty"), "True"),
    "list_files": "1",
    "which": "prog",
    "get_uid": "0",
    **dict.fromkeys(("include", "import_text", "import_yaml", "import"), SECRET),
}

#: Templates that open a connection though ``jinja_dns_check`` and ``jinja_http_query`` are false.
CONNECTING: Mapping[str, str] = {
    "dns_check, by update": "{% do opts.update({'jinja_dns_check': true}) %}{{ 'localhost'|dns_check(1) }}",
    "dns_check, by pop": "{% do opts.pop('jinja_dns_check') %}{{ 'localhost'|dns_check(1) }}",
    "dns_check, by clear": "{% do opts.clear() %}{{ 'localhost'|dns_check(1) }}",
    "dns_check, by set": "{% set opts = {} %}{{ 'localhost'|dns_check(1) }}",
    "dns_check, by set to a text": "{% set opts = 'x' %}{{ 'localhost'|dns_check(1) }}",
    "dns_check, by map": "{% do opts.clear() %}{{ ['localhost']|map('dns_check', 1)|list }}",
    "http_query, by update": "{% do opts.update({'jinja_http_query': true}) %}{% set salt = {'http.query': salt['test.arg']} %}"
    "{{ 'http://localhost:1'|http_query }}",
    "http_query, by set": "{% set opts = {'jinja_http_query': true} %}{% set salt = {'http.query': salt['test.arg']} %}"
    "{{ 'http://localhost:1'|http_query }}",
    "ifelse, by another table": "{% set salt = {'match.ifelse': CTX.functions['test.arg']} %}{{ ifelse('localhost') }}",
}

#: Templates that change what the engine, other functions and the next run see.
CHANGING: Mapping[str, str] = {
    "an option": "{% do opts.update({'whitelist_modules': []}) %}",
    "an option's list": "{% do opts['whitelist_modules'].append('cmd') %}",
    "an option's list, by extend": "{% do opts.whitelist_modules.extend(['cmd', 'file']) %}",
    "an option's map": "{% do opts.file_roots.update({'dev': ['/']}) %}",
    "an option's inner list": "{% do opts.file_roots.base.append('/') %}",
    "no option": "{% do opts.clear() %}",
    "an option, by a filter": "{% do opts|append_dict_key_value('whitelist_modules', 'cmd') %}",
    "an option, by a function's result": "{% do salt['config.get']('whitelist_modules').append('cmd') %}",
    "an option, by all options": "{% do salt['config.items']()['whitelist_modules'].append('cmd') %}",
    "an option, by test.get_opts": "{% do salt['test.get_opts']()['whitelist_modules'].append('cmd') %}",
    "an option, by config.option": "{% do salt['config.option']('whitelist_modules').append('cmd') %}",
    "a grain": "{% do grains.update({'roles': ['admin']}) %}",
    "a grain's list": "{% do grains.roles.append('admin') %}",
    "a grain, by a function's result": "{% do salt['grains.get']('roles').append('admin') %}",
    "a grain, by a filter": "{% do grains|set_dict_key_value('roles', ['admin']) %}",
    "pillar": "{% do pillar.update({'a': 2}) %}",
    "pillar's map": "{% do pillar.a.update({'b': 2}) %}",
    "pillar, by a function's result": "{% do salt['pillar.get']('a').update({'b': 2}) %}",
    "pillar, by all pillar": "{% do salt['pillar.raw']()['a'].update({'b': 2}) %}",
    "pillar, by a filter": "{% do pillar|update_dict_key_value('a', {'b': 2}) %}",
}  # fmt: skip


class Place:
    """A managed host in a directory, files of the machine beside it, and the templates of a tree."""

    def __init__(self, tmp_path: Path) -> None:
        self.marker, self.secrets, self.host = tmp_path / "marker", tmp_path / "secrets", tmp_path / "host"
        self.tree, self.nothing, self.binary = tmp_path / "tree", tmp_path / "nothing", tmp_path / "binary"
        self.program = tmp_path / "prog"
        for directory in (self.host, self.tree):
            directory.mkdir()
        self.secrets.write_text(SECRET)
        self.nothing.write_text("")
        self.binary.write_bytes(b"\0\1\2")
        self.program.write_text("#!/bin/sh\n")
        self.program.chmod(0o755)
        self._scratch = tmp_path / "scratch"
        self._scratch.mkdir()

    def runtime(self, *allowed: str, root: str = "", disabled: Sequence[str] = ()) -> Runtime:
        """Return a minion whose templates may call the functions of the modules ``allowed`` (none: of all), without those
        of the modules ``disabled``. ``root``: the host's root.
        """
        opts = {
            "id": "web1",
            "file_roots": {"base": [str(self.tree)]},
            "pillar_roots": {"base": []},
            "cachedir": str(self._scratch / "cache"),
            "host_root": root or str(self.host),
            "jinja_dns_check": False,
            "jinja_http_query": False,
            "whitelist_modules": list(allowed),
            "disable_modules": list(disabled),
        }
        return local_runtime(opts, grains={"id": "web1", "roles": ["web"]}, pillar={"a": {"b": 1}})

    def filled(self, template: str) -> str:
        """Return the template with the paths of this place."""
        words = {"FUN": FUN, "MARKER": str(self.marker), "SECRETS": str(self.secrets), "BINARY": str(self.binary)}
        words |= {"NOTHING": str(self.nothing), "FOLDER": str(self.secrets.parent), "PROGRAM": str(self.program)}
        template = template.replace("CTX", CTX)
        for word, text in words.items():
            template = template.replace(word, text)
        return template

    def on_minion(self, template: str, root: str = "") -> str:
        """Return what a template renders to on a minion; "" if the rendering failed."""
        templates = self.runtime("pillar", "test", "grains", root=root).context.templates
        return self._rendered(lambda text: templates.render(text, "jinja", {}, saltenv="base"), template)

    def with_disabled_modules(self, template: str) -> str:
        """Return what a template renders to on a minion whose option ``disable_modules`` names what runs programs, reads or
        writes; "" if the rendering failed.
        """
        templates = self.runtime(root="/", disabled=["cmd", "file", "slsutil", "state", "cp"]).context.templates
        return self._rendered(lambda text: templates.render(text, "jinja", {}, saltenv="base"), template)

    def in_editor(self, template: str) -> str:
        """Return what a template of an untrusted tree renders to in the editor; "" if the rendering failed."""
        session = Session(Settings(file_roots={"base": [str(self.tree)]}, id="web1"), self._scratch)
        templates = session.parts().run.tree.templates
        return self._rendered(lambda text: templates.render(text, "jinja", {}, saltenv="base"), template)

    def _rendered(self, render: Callable[[str], str], template: str) -> str:
        try:
            return render(self.filled(template))
        except StatecoreError:
            return ""

    def reached(self, text: str) -> list[str]:
        """Return the signs in a rendered text, and on the disk, that a template got further than data."""
        signs = [word for word in (*INSIDE, SECRET) if word in text]
        return [*signs, *(["marker"] if self.marker.exists() or self.marker.is_symlink() else [])]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("attack", REACHING)
def test_a_template_reaches_no_more_functions_than_the_minion_allows(place: Place, attack: str) -> None:
    assert place.reached(place.on_minion(REACHING[attack], "/")) == []


@pytest.mark.parametrize(
    "attack", [attack for attack in REACHING if any(word in REACHING[attack] for word in ("host.r", "CTX.templates"))]
)
def test_a_template_runs_and_reads_nothing_by_disabled_modules(place: Place, attack: str) -> None:
    assert place.reached(place.with_disabled_modules(REACHING[attack])) == []


@pytest.mark.parametrize("attack", [attack for attack in REACHING if attack not in ON_MINIONS])
def test_a_strangers_template_reaches_nothing_in_the_editor(place: Place, attack: str) -> None:
    assert place.reached(place.in_editor(REACHING[attack])) == []


@pytest.mark.parametrize(
    ("opening", "look"),
    [
        (opening, look)
        for opening, template in OPENED.items()
        for look in LOOKING
        # A variable of the template changes nothing for the statements, which look at the environment's.
        if "{% set" not in template or not LOOKING[look].startswith("{%")
    ],
)
def test_a_template_that_changes_opts_sees_no_file_of_the_machine(place: Place, opening: str, look: str) -> None:
    text = place.on_minion(OPENED[opening] + LOOKING[look])
    assert SEEN[look] not in text


@pytest.mark.parametrize("look", LOOKING)
def test_a_strangers_template_that_changes_opts_sees_no_file_of_the_machine(place: Place, look: str) -> None:
    text = place.in_editor(OPENED["update"] + LOOKING[look])
    assert SEEN[look] not in text


@pytest.mark.parametrize("attack", CONNECTING)
def test_a_template_that_changes_opts_opens_no_connection(place: Place, attack: str) -> None:
    text = place.on_minion(CONNECTING[attack])
    assert not any(word in text for word in ("127.0.0.1", "[::1]", "localhost"))


@pytest.mark.parametrize("attack", CHANGING)
def test_a_template_changes_nothing_but_its_own_variables(place: Place, attack: str) -> None:
    run = place.runtime("pillar", "test", "grains", "config").run_parts({}).run
    whole = (run.opts, run.ctx.opts, run.ctx.grains, run.ctx.pillar)
    before = copy.deepcopy([dict(each) for each in whole])
    run.tree.templates.render(place.filled(CHANGING[attack]), "jinja", {}, saltenv="base")
    assert [dict(each) for each in whole] == before
