"""``check``: render and compile a whole tree for one minion, and report all problems with file and line.

The SLS of the top file are compiled together. Then each SLS that this run does not contain is compiled alone, so that
the SLS of other minions are checked too. An SLS compiled alone may lack an ID that it requires. That is an error only
if no other SLS of the tree declares the ID.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypedDict

from statecore.analysis import forms, functions, requisites
from statecore.analysis.finding import Finding, Remark, count, merged
from statecore.analysis.inspection.compilation import Compilation, RuledFault, compiled, rule_of
from statecore.analysis.inspection.known import reacts, state_function
from statecore.analysis.inspection.places import (
    ACROSS,
    LACKING,
    fault_finding,
    keys_of,
    mark_of,
    pinpointed,
    remark_finding,
    source_line,
)
from statecore.analysis.inspection.templates import of_others, of_sls
from statecore.compile.draft import Draft, arguments, states
from statecore.model.errors import Mark, SlsError, SlsFault
from statecore.model.nearest import close_matches
from statecore.model.types import Low
from statecore.render import SlsTree
from statecore.render.top import INCLUDE
from statecore.runtime.state_runs.state_system import RunParts

#: Rules about single words of an SLS, which hold whatever the rest of the SLS contains.
_OF_WORDS = frozenset({"unknown-function", "unknown-argument", "old-form", "unquoted-mode", "unquoted-version"})

#: Rules about the words of templates.
_IN_TEMPLATES = frozenset({"undefined-name", "unknown-salt-function", "undefined-pillar-key"})

#: Matches the position at the end of a pillar error: ``... (/srv/pillar/top.sls:3)``.
_PLACE = re.compile(r"\s*\((\S+?)(?::(\d+))?\)$")


def check(
    parts: RunParts,
    slses: Sequence[str] = (),
    *,
    pillar_known: bool = True,
    standins: Mapping[str, Callable[..., object]] | None = None,
) -> list[Finding]:
    """Return all findings, unsorted and possibly with duplicates. ``slses`` limits the check to these SLS references
    and globs.

    ``pillar_known``: the pillar is the minion's own, so missing pillar keys are reported. ``standins`` are functions
    with which an SLS that does not render is rendered again, so that its states are checked all the same; None: those
    of the run, and only an undefined name has this effect.
    """
    checker = _Checker(parts, pillar_known=pillar_known, standins=standins)
    return _without_echoes(list(checker.everything(slses)))


class CheckReport(TypedDict):
    """Report of `statecore check` for one minion, as a map for JSON: the errors and warnings in its state tree and pillar."""

    #: Level ("errors", "warnings", "notes") -> number of findings.
    summary: dict[str, int]
    findings: list[dict[str, object]]


def report(findings: Sequence[Finding]) -> CheckReport:
    """Return the findings of one minion as a map for JSON: ``summary`` by level, ``findings`` sorted by file and line."""
    listed = merged({"": findings})
    return {"summary": count(listed), "findings": [finding.as_data() for finding in listed]}


@dataclass(slots=True)
class _Checker:
    """One run of ``check`` over a state tree: the RunParts of a state run that is not started, and caches of declared
    IDs and looked-up functions.
    """

    parts: RunParts
    pillar_known: bool
    #: Functions for a second rendering of an SLS that does not render; None: those of the run.
    standins: Mapping[str, Callable[..., object]] | None = None
    #: ID or name -> the SLS that declare it, for all SLS that render.
    _declared: dict[str, list[str]] = field(default_factory=dict)
    _lookups: dict[str, functions.Known] = field(default_factory=dict)

    def everything(self, slses: Sequence[str]) -> Iterator[Finding]:
        run = self.parts.run
        run.tree.report_columns()
        self.parts.fetch_modules(run.tree.files.envs())
        yield from self._pillar()
        top: Mapping[str, Sequence[str]] = {}
        if not slses:
            found, top = of_top(self.parts)
            yield from found
        whole = compiled(run.tree, top, run.opts)
        reached = {(part.rendered.saltenv, part.rendered.sls) for part in whole.draft.parts}
        yield from self._of_run(whole, None)
        listed, missing = self._listed(slses)
        yield from missing
        self._declared = self._declarations(listed)
        for saltenv, sls in listed:
            known = (saltenv, sls) in reached
            if not known or whole.faults:
                alone = compiled(run.tree, {saltenv: [sls]}, run.opts)
                yield from self._of_run(self._forgiven(alone, known), sls)
                yield from self._behind(alone, sls, saltenv)
            yield from of_sls(self.parts, sls, saltenv, pillar=self.pillar_known and (known or not top))
        if not slses:
            yield from of_others(self.parts)

    def _behind(self, alone: Compilation, sls: str, saltenv: str) -> Iterator[Finding]:
        """Yield further findings of an SLS whose rendering failed on an undefined name; undefined names now render as
        empty.
        """
        stumbled = [one.fault for one in alone.faults if one.rule == "render" and one.fault.sls == sls]
        if not stumbled or (self.standins is None and not any("is undefined" in fault.message for fault in stumbled)):
            return
        run = self.parts.run
        opts = {**run.opts, "allow_undefined": True}
        ctx = run.ctx
        tree = SlsTree(
            ctx.files,
            opts=opts,
            grains=ctx.grains,
            pillar=ctx.pillar,
            functions=ctx.functions if self.standins is None else self.standins,
            renderers=run.tree.renderers,
            untrusted=run.tree.untrusted,
        )
        tree.report_columns()
        again = _Checker(self.parts._replace(run=run._replace(tree=tree, opts=opts)), pillar_known=False)
        for finding in again._of_run(compiled(tree, {saltenv: [sls]}, opts), sls):
            if finding.rule in _OF_WORDS:
                yield finding

    # -------------------------------------------------------------------------------------------------- top file, pillar

    def _pillar(self) -> Iterator[Finding]:
        for error in self.parts.run.ctx.pillar.get("_errors") or ():
            place = _PLACE.search(str(error))
            mark = Mark(place[1], int(place[2] or 0), 1 if place[2] else 0) if place else None
            yield Finding("pillar", _PLACE.sub("", str(error)), mark)

    # ------------------------------------------------------------------------------------------------------------- SLS files

    def _listed(self, slses: Sequence[str]) -> tuple[list[tuple[str, str]], list[Finding]]:
        """Return the (saltenv, SLS) pairs of the requested files (all files by default), and a finding for each missing
        file.
        """
        tree = self.parts.run.tree
        only = self.parts.run.opts.get("saltenv")
        envs = [env for env in tree.files.envs() if not only or env == only]
        if not slses:
            every = [(env, sls) for env in envs for sls in tree.find("*", env) if not _is_top(sls, self.parts)]
            return [(env, sls) for env, sls in every if not _is_reaction(tree, sls, env)], []
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
                rendered = self.parts.run.tree.render(sls, saltenv)
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
        """Return the compilation of a single SLS file without faults that only arise because the file was compiled
        alone.

        An SLS file outside the top file's run gets the warning "needs-other-sls" instead of such a fault.
        """
        faults = []
        for one in (pinpointed(each, alone.draft) for each in alone.faults):
            lacking = LACKING.search(one.fault.message) if one.rule in ACROSS else None
            wanted = (lacking[2] or lacking[3]) if lacking else ""
            others = [sls for sls in self._declared.get(wanted, ()) if sls != one.fault.sls]
            if wanted and not others and not one.fault.hint:
                one = RuledFault(one.rule, one.fault._replace(hint=self._near(wanted)))
            if one.rule not in ACROSS or not (others or reached):
                faults.append(one)
            elif not reached:
                text = f"'{wanted}' is declared in '{others[0]}', which this SLS does not include"
                faults.append(
                    RuledFault("needs-other-sls", one.fault._replace(message=text, hint=f"include '{others[0]}'"))
                )
        return Compilation(alone.draft, tuple(faults))

    def _near(self, wanted: str) -> str:

        near = close_matches(wanted, list(self._declared), n=1)
        return f"the nearest of the tree is '{near[0]}' in '{self._declared[near[0]][0]}'" if near else ""

    def _of_run(self, compilation: Compilation, own: str | None) -> Iterator[Finding]:
        """Yield the findings of one compilation. ``own``: the SLS that was compiled alone; findings in other SLS are
        left out.
        """
        draft = compilation.draft
        for one in compilation.faults:
            # The compiler reports only the first cycle; ``_of_graph`` reports all of them.
            if one.rule != "cycle":
                yield fault_finding(pinpointed(one, draft))
        if not draft.graph.chunks:
            remarks = [
                each for low in _raw(draft) if own in (None, low["__sls__"]) for each in self._of_chunk(low, False)
            ]
        else:
            remarks = list(self._of_chunks(draft, own))
            yield from self._of_graph(draft, own)
        for remark in remarks:
            yield remark_finding(remark, draft)

    def _of_chunks(self, draft: Draft, own: str | None) -> Iterator[Remark]:
        extended = {
            str(each) for part in draft.parts if part.rendered.sls == own for each in part.rendered.extend or ()
        }
        for low in draft.chunks:
            if own is None or low["__sls__"] == own or low["__id__"] in extended:
                yield from self._of_chunk(low, True)

    def _of_chunk(self, low: Low, whole: bool) -> Iterator[Remark]:
        yield from functions.remarks(low, self._lookup, whole=whole)
        yield from forms.remarks(low, partial(source_line, self.parts.run.tree))

    def _of_graph(self, draft: Draft, own: str | None) -> Iterator[Finding]:
        graph = draft.graph
        for ring in requisites.rings(graph):
            yield self._ring(draft, ring)
        listening = requisites.listening_to_nothing(graph.chunks)
        for remark in (*requisites.remarks(graph, partial(reacts, self.parts)), *listening):
            if own in (None, remark.origin.get("__sls__")):
                yield remark_finding(remark, draft)

    def _ring(self, draft: Draft, ring: Sequence[requisites.Link]) -> Finding:
        first = min(range(len(ring)), key=lambda at: (str(ring[at].low.get("__sls__")), str(ring[at].low["__id__"])))
        ring = [*ring[first:], *ring[:first]]
        origin = ring[0].low
        text = requisites.ring_text(ring, lambda low, kind: str(mark_of(draft, low, kind)))
        remark = Remark(
            "cycle", f"requisites lead back to where they began: {text}", origin, keys_of(origin, ring[0].kind)
        )
        return remark_finding(remark, draft)

    # -------------------------------------------------------------------------------------------------------------- look-ups

    def _lookup(self, full: str) -> functions.Known:
        if full not in self._lookups:
            self._lookups[full] = state_function(self.parts, full)
        return self._lookups[full]


def _without_echoes(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with those about the same template line merged: a rendering failure takes the column and hint
    of the finding in the template.
    """
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


#: A function of a reaction: a client of Salt, a module and a function (``local.state.apply:``). No state has two dots.
_REACTION = re.compile(r"^\s+['\"]?(?:local|cmd|caller|runner|wheel)\.\w+\.\w+['\"]?\s*:", re.MULTILINE)


def _is_reaction(tree: SlsTree, sls: str, saltenv: str) -> bool:
    """Return True if an SLS file contains reactions for the master's reactor: it declares no states, and uses an event
    as a variable.
    """
    try:
        return _REACTION.search(tree.source(sls, saltenv).text) is not None
    except SlsError:
        return False


def _is_top(sls: str, parts: RunParts) -> bool:
    return sls == str(parts.run.opts.get("state_top") or "top.sls").removesuffix(".sls")


def _raw(draft: Draft) -> Iterator[Low]:
    """Yield the low chunks of a state tree that does not compile, made directly from its state declarations."""
    for name, body in draft.high.items():
        for state, run in states(body) if isinstance(body, Mapping) else ():
            named, _, fun = str(state).partition(".")
            listed = run if isinstance(run, list) else []
            called = [item for item in listed if isinstance(item, str)] or ([fun] if fun else [])
            if len(called) == 1:
                given = {key: value for key, value in arguments(listed) if isinstance(key, str)}
                origin = {key: body.get(key) for key in ("__sls__", "__env__")}
                yield {"name": name, **given, **origin, "state": named, "fun": called[0], "__id__": str(name)}


def of_top(parts: RunParts) -> tuple[list[Finding], Mapping[str, Sequence[str]]]:
    """Return the findings in the top files, and {saltenv: SLS references} for this minion without missing SLS."""
    try:
        refs = parts.top()
    except SlsError as error:
        return [fault_finding(RuledFault(_rule(fault), fault)) for fault in error.faults], {}
    tree = parts.run.tree
    return list(_unfound(parts)), {env: [ref for ref in each if tree.find(ref, env)] for env, each in refs.items()}


def _unfound(parts: RunParts) -> Iterator[Finding]:
    """Yield a finding for each top file reference to an SLS that does not exist."""
    tree = parts.run.tree
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
                        fault = fault._replace(mark=mark, hint=tree.hint(ref, env), excerpt=tree.excerpt(mark))
                        yield fault_finding(RuledFault("missing-sls", fault))


def _rule(fault: SlsFault) -> str:
    rule = rule_of(fault)
    return rule if rule == "render" else "top"
