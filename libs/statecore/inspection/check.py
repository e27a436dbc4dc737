"""``check``: everything of a tree rendered and compiled for one minion; all that is wrong or odd, with its place.

The top file's run is compiled as a whole; besides, each SLS by itself, so that those of other minions are looked at too. What
an SLS by itself lacks (an ID that it requires, declared in an SLS that it does not include) is no error where the top file
brings it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jinja2

from statecore.analysis import forms, functions, requisites, templates
from statecore.analysis.finding import Finding, Remark, count, merged
from statecore.compile.draft import Draft, arguments, states
from statecore.errors import Mark, NotAvailable, SlsError, SlsFault
from statecore.inspection.compilation import Compilation, Told, compiled, rule_of
from statecore.loader import Loader
from statecore.render import SlsTree
from statecore.render.jinja import environment
from statecore.render.top import INCLUDE
from statecore.state_runs import Bench
from statecore.types import Low

_TEMPLATES = (".jinja", ".j2", ".jinja2")

#: Rules that an SLS by itself may break without harm, when something else of its run brings what it lacks.
_ACROSS = frozenset({"extend", "requisite-to-nothing"})

#: Rules about words of an SLS that do not depend on what else is in it.
_OF_WORDS = frozenset({"unknown-function", "unknown-argument", "old-form", "unquoted-mode", "unquoted-version"})

#: Lines below a requisite in which the names that it lists are looked for.
_NEAR = 30

#: Rules about the words of templates.
_IN_TEMPLATES = frozenset({"undefined-name", "unknown-salt-function", "undefined-pillar-key"})

#: What a fault of these names: ``[require: (pkg: nginx)]``, ``ID 'nginx'``.
_LACKING = re.compile(r"\[\w+: \((\w+): (.+?)\)\]|ID '(.+?)'")

#: ``... (/srv/pillar/top.sls:3)`` at the end of a pillar error.
_PLACE = re.compile(r"\s*\((\S+?)(?::(\d+))?\)$")


def check(bench: Bench, slses: Sequence[str] = (), *, pillar_known: bool = True) -> list[Finding]:
    """What there is to be found, unsorted, some of it twice. ``slses`` limits it to these SLS, globs among them.

    ``pillar_known``: the pillar is the minion's own, so that a key that it lacks is worth a word.
    """
    checker = _Checker(bench, pillar_known=pillar_known)
    return _without_echoes(list(checker.everything(slses)))


def report(findings: Sequence[Finding]) -> dict[str, Any]:
    """Findings of one minion as plain data: ``summary`` by level, ``findings`` by place."""
    told = merged({"": findings})
    return {"summary": count(told), "findings": [finding.as_data() for finding in told]}


@dataclass(slots=True)
class _Checker:
    bench: Bench
    pillar_known: bool
    #: ID -> SLS that declare it, of all that could be rendered.
    _declared: dict[str, list[str]] = field(default_factory=dict)
    _lookups: dict[str, functions.Known] = field(default_factory=dict)

    def everything(self, slses: Sequence[str]) -> Iterator[Finding]:
        stage = self.bench.stage
        stage.tree.name_columns()
        self.bench.fetch_modules(stage.tree.files.envs())
        yield from self._pillar()
        top: Mapping[str, Sequence[str]] = {}
        if not slses:
            found, top = self._top()
            yield from found
        whole = compiled(stage.tree, top, stage.opts)
        reached = {(part.rendered.saltenv, part.rendered.sls) for part in whole.draft.parts}
        yield from self._of_run(whole, None)
        listed, missing = self._listed(slses)
        yield from missing
        self._declared = self._declarations(listed)
        for saltenv, sls in listed:
            known = (saltenv, sls) in reached
            if not known or whole.faults:
                alone = compiled(stage.tree, {saltenv: [sls]}, stage.opts)
                yield from self._of_run(self._forgiven(alone, known), sls)
                yield from self._behind(alone, sls, saltenv)
            yield from self._template(sls, saltenv, pillar=known or not top)
        if not slses:
            yield from self._other_templates()

    def _behind(self, alone: Compilation, sls: str, saltenv: str) -> Iterator[Finding]:
        """What else is wrong in an SLS whose template stumbled over a name: it is read once more, with such names empty."""
        stumbled = [told.fault for told in alone.faults if told.rule == "render" and told.fault.sls == sls]
        if not any("is undefined" in fault.message for fault in stumbled):
            return
        stage = self.bench.stage
        opts = {**stage.opts, "allow_undefined": True}
        ctx = stage.ctx
        tree = SlsTree(ctx.files, opts=opts, grains=ctx.grains, pillar=ctx.pillar, functions=ctx.functions)
        tree.name_columns()
        again = _Checker(replace(self.bench, stage=replace(stage, tree=tree, opts=opts)), pillar_known=False)
        for finding in again._of_run(compiled(tree, {saltenv: [sls]}, opts), sls):
            if finding.rule in _OF_WORDS:
                yield finding

    # -------------------------------------------------------------------------------------------------- top file, pillar

    def _pillar(self) -> Iterator[Finding]:
        for error in self.bench.stage.ctx.pillar.get("_errors") or ():
            place = _PLACE.search(str(error))
            mark = Mark(place[1], int(place[2] or 0), 1 if place[2] else 0) if place else None
            yield Finding("pillar", _PLACE.sub("", str(error)), mark)

    def _top(self) -> tuple[list[Finding], Mapping[str, Sequence[str]]]:
        """Findings in the top files, and what they give this minion."""
        try:
            refs = self.bench.top()
        except SlsError as error:
            return [self._told(Told(_or_top(fault), fault)) for fault in error.faults], {}
        return list(self._unfound()), {env: self._there(env, each) for env, each in refs.items()}

    def _there(self, env: str, refs: Sequence[str]) -> list[str]:
        """Those that exist: the others were told of at their line in the top file."""
        return [ref for ref in refs if self.bench.stage.tree.find(ref, env)]

    def _unfound(self) -> Iterator[Finding]:
        """References of the top files, of whichever minion, that name no SLS."""
        tree = self.bench.stage.tree
        for own in tree.files.envs():
            if tree.locate("top", own) is None:
                continue
            for env, targets in tree.data("top", own).items():
                for target, rows in targets.items() if isinstance(targets, Mapping) and env != INCLUDE else ():
                    listed = rows if isinstance(rows, list) else []
                    options = {key for row in listed if isinstance(row, Mapping) for key in row}
                    for ref in (row for row in listed if isinstance(row, str)):
                        if env in tree.files.envs() and not tree.find(ref, env) and "ignore_missing" not in options:
                            fault = SlsFault(f"No matching sls found for '{ref}' in env '{env}'", sls=ref)
                            mark = tree.locate("top", own, str(env), str(target), ref)
                            fault = replace(fault, mark=mark, hint=tree.hint(ref, env), excerpt=tree.excerpt(mark))
                            yield self._told(Told("missing-sls", fault))

    # ------------------------------------------------------------------------------------------------------------- SLS files

    def _listed(self, slses: Sequence[str]) -> tuple[list[tuple[str, str]], list[Finding]]:
        """(saltenv, SLS) of all files, or of those asked for; a finding for each that is not there."""
        tree = self.bench.stage.tree
        only = self.bench.stage.opts.get("saltenv")
        envs = [env for env in tree.files.envs() if not only or env == only]
        if not slses:
            return [(env, sls) for env in envs for sls in tree.find("*", env) if not _is_top(sls, self.bench)], []
        found = [(env, sls) for env in envs for ref in slses for sls in tree.find(ref, env)]
        lacking = [ref for ref in slses if not any(tree.find(ref, env) for env in envs)]
        return found, [
            Finding("missing-sls", f"there is no SLS '{ref}'", hint=tree.hint(ref, (envs or ["base"])[0]))
            for ref in lacking
        ]

    def _declarations(self, listed: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
        declared: dict[str, list[str]] = {}
        for saltenv, sls in listed:
            try:
                rendered = self.bench.stage.tree.render(sls, saltenv)
            except SlsError:
                continue
            for name, body in rendered.high.items():
                declared.setdefault(str(name), []).append(sls)
                for _, run in states(body) if isinstance(body, dict) else ():
                    for key, value in arguments(run):
                        if key == "name" and isinstance(value, str):
                            declared.setdefault(value, []).append(sls)
        return declared

    def _forgiven(self, alone: Compilation, reached: bool) -> Compilation:
        """A compilation without the faults that come of its being alone; a warning in their place where no run is known."""
        faults = []
        for told in (_pinpointed(each, alone.draft) for each in alone.faults):
            lacking = _LACKING.search(told.fault.message) if told.rule in _ACROSS else None
            wanted = (lacking[2] or lacking[3]) if lacking else ""
            others = [sls for sls in self._declared.get(wanted, ()) if sls != told.fault.sls]
            if wanted and not others and not told.fault.hint:
                told = Told(told.rule, replace(told.fault, hint=self._near(wanted)))
            if told.rule not in _ACROSS or not (others or reached):
                faults.append(told)
            elif not reached:
                text = f"'{wanted}' is declared in '{others[0]}', which this SLS does not include"
                faults.append(Told("needs-other-sls", replace(told.fault, message=text, hint=f"include '{others[0]}'")))
        return Compilation(alone.draft, tuple(faults))

    def _near(self, wanted: str) -> str:
        """Where in the tree there is something like it."""
        near = difflib.get_close_matches(wanted, list(self._declared), n=1)
        return f"the nearest of the tree is '{near[0]}' in '{self._declared[near[0]][0]}'" if near else ""

    def _of_run(self, compilation: Compilation, own: str | None) -> Iterator[Finding]:
        """Findings of one compilation; of one SLS alone those that are its own."""
        draft = compilation.draft
        for told in compilation.faults:
            # Of rings the compiler tells the first; all of them are told below.
            if told.rule != "cycle":
                yield self._told(_pinpointed(told, draft))
        if not draft.graph.chunks:
            remarks = [
                each for low in _raw(draft) if own in (None, low["__sls__"]) for each in self._of_chunk(low, False)
            ]
        else:
            remarks = list(self._of_chunks(draft, own))
            yield from self._of_graph(draft, own)
        for remark in remarks:
            yield self._placed(remark, draft)

    def _of_chunks(self, draft: Draft, own: str | None) -> Iterator[Remark]:
        extended = {
            str(each) for part in draft.parts if part.rendered.sls == own for each in part.rendered.extend or ()
        }
        for low in draft.chunks:
            if own is None or low["__sls__"] == own or low["__id__"] in extended:
                yield from self._of_chunk(low, True)

    def _of_chunk(self, low: Low, whole: bool) -> Iterator[Remark]:
        yield from functions.remarks(low, self._lookup, whole=whole)
        yield from forms.remarks(low, self._line)

    def _of_graph(self, draft: Draft, own: str | None) -> Iterator[Finding]:
        graph = draft.graph
        for ring in requisites.rings(graph):
            yield self._ring(draft, ring)
        listening = requisites.listening_to_nothing(graph.chunks)
        for remark in (*requisites.remarks(graph, self._reacts), *listening):
            if own in (None, remark.origin.get("__sls__")):
                yield self._placed(remark, draft)

    def _ring(self, draft: Draft, ring: Sequence[requisites.Link]) -> Finding:
        first = min(range(len(ring)), key=lambda at: (str(ring[at].low.get("__sls__")), str(ring[at].low["__id__"])))
        ring = [*ring[first:], *ring[:first]]
        origin = ring[0].low
        text = requisites.ring_text(ring, lambda low, kind: str(_mark(draft, low, kind)))
        remark = Remark(
            "cycle", f"requisites lead back to where they began: {text}", origin, _keys(origin, ring[0].kind)
        )
        return self._placed(remark, draft)

    # ------------------------------------------------------------------------------------------------------------- templates

    def _template(self, sls: str, saltenv: str, *, pillar: bool) -> Iterator[Finding]:
        """What the Jinja of one SLS says; ``pillar``: the minion runs it, so its keys are to be there."""
        stage = self.bench.stage
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
            # Rendering told of it.
            return
        spots = [*templates.undefined_names(tree, env, names), *self._salt_calls(tree)]
        if pillar and self.pillar_known and not stage.ctx.pillar.get("_errors"):
            spots += templates.undefined_pillar_keys(tree, stage.ctx.pillar)
        for spot in spots:
            yield _spotted(spot, source.shown, source.text, sls)

    def _other_templates(self) -> Iterator[Finding]:
        """Templates that are no SLS: their names come from whoever imports them, the functions that they call do not."""
        files = self.bench.stage.tree.files
        for saltenv in files.envs():
            env = environment(files, saltenv, {}, {})
            for path in (path for path in files.paths(saltenv) if path.endswith(_TEMPLATES)):
                fetched = files.fetch(path, saltenv)
                if fetched is None:
                    continue
                text = fetched.read_text("utf-8", "replace")
                try:
                    tree = env.parse(text, path)
                except jinja2.TemplateSyntaxError as error:
                    spot = templates.Spot("render", f"Jinja syntax error: {error.message}", error.lineno, "", "")
                    yield _spotted(spot, files.shown(fetched), text, "")
                    continue
                for spot in self._salt_calls(tree):
                    yield _spotted(spot, files.shown(fetched), text, "")

    def _salt_calls(self, tree: jinja2.nodes.Template) -> Iterator[templates.Spot]:
        loader, ctx = self.bench.loader, self.bench.stage.ctx

        def exists(name: str) -> bool:
            module = name.partition(".")[0]
            # A module that is there and not usable here is some other host's.
            return loader.has("modules", name, ctx) or (
                loader.known("modules", module) and not _usable(self.bench, module)
            )

        return templates.unknown_functions(tree, exists, lambda name: loader.nearest("modules", name, ctx))

    # -------------------------------------------------------------------------------------------------------------- look-ups

    def _lookup(self, full: str) -> functions.Known:
        if full not in self._lookups:
            self._lookups[full] = known_function(self.bench, full)
        return self._lookups[full]

    def _reacts(self, state: str) -> bool:
        return reacts(self.bench.loader, self.bench, state)

    def _line(self, low: Mapping[str, Any], keys: tuple[str, ...]) -> str:
        """The source line at a path of keys."""
        tree = self.bench.stage.tree
        sls, saltenv = str(low.get("__sls__", "")), str(low.get("__env__", "base"))
        mark = tree.locate(sls, saltenv, *keys)
        if mark is None or not mark.line:
            return ""
        lines = tree.source(sls, saltenv).text.splitlines()
        return lines[mark.line - 1] if mark.line <= len(lines) else ""

    def _placed(self, remark: Remark, draft: Draft) -> Finding:
        mark = _place(draft, remark.origin, remark.keys)
        excerpt = self.bench.stage.tree.excerpt(mark)
        sls = str(remark.origin.get("__sls__", ""))
        return Finding(remark.rule, remark.message, mark, sls, remark.keys[0], excerpt, remark.hint)

    def _told(self, told: Told) -> Finding:
        fault = told.fault
        mark = fault.mark
        if mark is not None and mark.line and not mark.column:
            mark = replace(mark, column=1)
        return Finding(told.rule, fault.message, mark, fault.sls, fault.id, fault.excerpt, fault.hint)


def _without_echoes(findings: Sequence[Finding]) -> list[Finding]:
    """What made a rendering fail was found in the template too: the failure takes its column and hint."""
    failed = {(one.mark.file, one.mark.line) for one in findings if one.rule == "render" and one.mark}
    echoes: dict[tuple[str, int], Finding] = {}
    for one in findings:
        if one.mark and one.rule in _IN_TEMPLATES and (one.mark.file, one.mark.line) in failed:
            echoes.setdefault((one.mark.file, one.mark.line), one)
    kept = []
    for one in findings:
        echo = echoes.get((one.mark.file, one.mark.line)) if one.mark else None
        if echo is not None and one.rule == "render":
            kept.append(replace(one, mark=echo.mark, hint=one.hint or echo.hint))
        elif echo is None or one.rule not in _IN_TEMPLATES:
            kept.append(one)
    return kept


def known_function(bench: Bench, full: str) -> functions.Known:
    """What is known of a state function on this minion, or on one where its module is usable."""
    loader, ctx = bench.loader, bench.stage.ctx
    try:
        served, function = loader.function("states", full, ctx)
        return functions.Known(served.parameters(function))
    except NotAvailable as missing:
        reason = missing.reason
    module, _, name = full.partition(".")
    if reason and any(not source.native and source.stem == module for source in loader.sources("states")):
        return functions.Known(exists=False, reason=reason)
    built_in = loader.blueprints("states", module)
    if name in built_in:
        return functions.Known(built_in[name])
    near = difflib.get_close_matches(full, [f"{module}.{each}" for each in built_in], n=1, cutoff=0.7)
    return functions.Known(exists=False, nearest=near[0] if near else loader.nearest("states", full, ctx))


def reacts(loader: Loader, bench: Bench, state: str) -> bool:
    """Whether a state module has a mod_watch, usable here or not."""
    return loader.has("states", f"{state}.mod_watch", bench.stage.ctx) or "mod_watch" in loader.blueprints(
        "states", state
    )


def _usable(bench: Bench, module: str) -> bool:
    try:
        bench.loader.serve("modules", module, bench.stage.ctx)
    except NotAvailable:
        return False
    return True


def _is_top(sls: str, bench: Bench) -> bool:
    return sls == str(bench.stage.opts.get("state_top") or "top.sls").removesuffix(".sls")


def _or_top(fault: SlsFault) -> str:
    rule = rule_of(fault)
    return rule if rule == "render" else "top"


def _raw(draft: Draft) -> Iterator[Low]:
    """Chunks of what was declared, as far as that can be told without compiling it."""
    for name, body in draft.high.items():
        for state, run in states(body) if isinstance(body, Mapping) else ():
            named, _, fun = str(state).partition(".")
            listed = run if isinstance(run, list) else []
            called = [item for item in listed if isinstance(item, str)] or ([fun] if fun else [])
            if len(called) == 1:
                given = {key: value for key, value in arguments(listed) if isinstance(key, str)}
                origin = {key: body.get(key) for key in ("__sls__", "__env__")}
                yield {"name": name, **given, **origin, "state": named, "fun": called[0], "__id__": str(name)}


def _keys(low: Mapping[str, Any], *more: str) -> tuple[str, ...]:
    return (str(low["__id__"]), str(low["state"]), *more)


def _mark(draft: Draft, low: Mapping[str, Any], kind: str) -> Mark | None:
    mark = _place(draft, low, _keys(low, kind))
    return replace(mark, column=0) if mark is not None else None


def _place(draft: Draft, origin: Mapping[str, Any], keys: tuple[str, ...]) -> Mark | None:
    """Where a path of keys is written: in the SLS of the ID, else in one that extends the ID, else the ID itself."""
    tree = draft.tree
    if tree is None:
        return None
    own = str(origin.get("__sls__", "")), str(origin.get("__env__", "base"))
    mark = tree.locate(*own, *keys)
    if len(keys) > 2 and mark == tree.locate(*own, *keys[:-1]):
        for part in draft.parts:
            where = part.rendered.sls, part.rendered.saltenv
            if keys[0] in (part.rendered.extend or ()) and where != own:
                other = tree.locate(*where, *keys)
                if other != tree.locate(*where, *keys[:-1]):
                    return other
    return mark


def _pinpointed(told: Told, draft: Draft) -> Told:
    """A reference to nothing at the line of the name itself, which stands below the requisite."""
    lacking = _LACKING.search(told.fault.message)
    mark, tree = told.fault.mark, draft.tree
    if told.rule not in _ACROSS or not lacking or not lacking[2] or mark is None or not mark.line or tree is None:
        return told
    own = next((part.rendered for part in draft.parts if part.rendered.sls == told.fault.sls), None)
    if own is None:
        return told
    lines = tree.source(own.sls, own.saltenv).text.splitlines()
    for number, line in enumerate(lines[mark.line - 1 : mark.line + _NEAR], mark.line):
        found = re.search(rf"(?<![\w.-]){re.escape(lacking[2])}(?![\w-])", line)
        if found:
            place = replace(mark, line=number, column=found.start() + 1)
            return Told(told.rule, replace(told.fault, mark=place, excerpt=tree.excerpt(place)))
    return told


def _spotted(spot: templates.Spot, file: str, text: str, sls: str) -> Finding:
    lines = text.splitlines()
    line = lines[spot.line - 1] if 0 < spot.line <= len(lines) else ""
    found = re.search(rf"(?<![\w.]){re.escape(spot.word)}(?!\w)", line) if spot.word else None
    column = (found.start() if found else max(line.find(spot.word), 0)) + 1
    shown = f"{line}    <======================" if line else ""
    return Finding(spot.rule, spot.message, Mark(file, spot.line, column), sls, "", shown, spot.hint)


__all__ = ["check", "known_function", "reacts"]
