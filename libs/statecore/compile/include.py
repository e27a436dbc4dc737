"""Compiler pass: render SLS references and the SLS files that they include, each SLS once.

An included SLS comes before the SLS that includes it.

Source: docs/state-system.md#includes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from statecore.compile.draft import Draft, Part
from statecore.model.errors import SlsError, SlsFault
from statecore.render import RenderedSls, SlsTree

_RELATIVE = re.compile(r"(\.+)(.*)")

#: Saltenv of an include that is searched in all saltenvs of the run.
_ANY_ENVIRONMENT = "_xenv"


def include(draft: Draft) -> Draft:
    """Compiler pass: render the SLS files of the run and the files that they include. Return the new draft.

    Included files come first. Faults: an unknown saltenv, an SLS that cannot be found or rendered, a malformed include.
    """
    if draft.tree is None:
        return draft
    gathering = _Gathering(draft, draft.tree)
    known = draft.tree.files.envs()
    for saltenv, refs in draft.matches.items():
        if saltenv not in known:
            gathering.faults.append(
                SlsFault(
                    f"No matching salt environment for environment '{saltenv}' found",
                    hint=f"there is {', '.join(known) or 'no environment at all'}",
                )
            )
            continue
        for ref in refs:
            for sls in draft.tree.find(ref, saltenv) or [ref]:
                gathering.take(sls, saltenv, ())
    return replace(draft, parts=tuple(gathering.parts), faults=(*draft.faults, *gathering.faults))


@dataclass(slots=True)
class _Gathering:
    """Depth-first walk over the includes of SLS files: collects the rendered files (``parts``) and the faults."""

    draft: Draft
    tree: SlsTree
    parts: list[Part] = field(default_factory=list)
    faults: list[SlsFault] = field(default_factory=list)
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def take(self, sls: str, saltenv: str, included_from: tuple[str, ...]) -> None:
        """Render an SLS file and append the rendered SLS to ``self.parts``, after all SLS files that it includes. An
        SLS file that was taken before is skipped; errors are appended to ``self.faults``.
        """
        if (saltenv, sls) in self._seen:
            return
        begun = len(self._seen)
        self._seen.add((saltenv, sls))
        try:
            rendered = self.tree.render(sls, saltenv)
        except SlsError as error:
            self.faults += error.faults
            return
        if not isinstance(rendered.include, list | tuple):
            self._fault(f"Include Declaration in SLS {sls} is not formed as a list", rendered)
        else:
            for entry in rendered.include:
                self._follow(entry, rendered, (sls, *included_from))
        self.parts.append(Part(rendered, included_from, begun))

    def _follow(self, entry: object, rendered: RenderedSls, included_from: tuple[str, ...]) -> None:
        # ``written``: the text of the entry in the file, for the fault's line.
        saltenv, wanted, written = rendered.saltenv, entry, str(entry)
        if isinstance(entry, Mapping) and len(entry) == 1:
            saltenv, wanted = next((str(key), value) for key, value in entry.items())
            written = saltenv
        if not isinstance(wanted, str):
            text = f"An include of SLS '{rendered.sls}' is not an SLS or one environment: SLS"
            self._fault(text, rendered, written, hint=f"it is {entry!r}")
            return
        absolute = self._absolute(wanted, rendered, written, saltenv)
        if absolute is None:
            return
        if saltenv == _ANY_ENVIRONMENT:
            saltenv = self._having(absolute, rendered, written) or ""
            if not saltenv:
                return
        elif saltenv not in self.tree.files.envs():
            text = (
                f"Nonexistent saltenv '{saltenv}' found in include of '{absolute}'"
                f" within SLS '{rendered.saltenv}:{rendered.sls}'"
            )
            self._fault(text, rendered, written)
            return
        found = self.tree.find(absolute, saltenv)
        if not found:
            text = (
                f"Specified SLS {absolute} in saltenv {saltenv} is not available on the salt master or"
                " through a configured fileserver"
            )
            self._fault(text, rendered, written, hint=self.tree.hint(absolute, saltenv))
        for sls in found:
            self.take(sls, saltenv, included_from)

    def _absolute(self, wanted: str, rendered: RenderedSls, written: str, saltenv: str) -> str | None:
        """Return the full reference of an included SLS such as ``..common``; each leading dot goes up one level.

        None, and a fault, if it has more dots than the including SLS has levels.
        """
        found = _RELATIVE.fullmatch(wanted)
        if found is None:
            return wanted
        dots, rest = found.groups()
        levels = rendered.sls.split(".")
        if rendered.file.endswith(f"/{'/'.join(levels)}/init.sls"):
            levels.append("init")
        if len(dots) > len(levels):
            text = (
                f"Attempted relative include of '{wanted}' within SLS '{rendered.saltenv}:{rendered.sls}'"
                " goes beyond top level package"
            )
            self._fault(text, rendered, written)
            return None
        package = levels[: -len(dots)]
        if rest or not package:
            return ".".join([*package, rest])
        # ``.`` alone is the package: d/init.sls from d/b.sls. Salt calls it ``d.``, which no requisite can name.
        return self.tree.package(".".join(package), rendered.saltenv if saltenv == _ANY_ENVIRONMENT else saltenv)

    def _having(self, wanted: str, rendered: RenderedSls, written: str) -> str | None:

        having = [env for env in self.draft.matches if self.tree.find(wanted, env)]
        if len(having) == 1 or rendered.saltenv in having:
            return having[0] if len(having) == 1 else rendered.saltenv
        envs = ", ".join(having or self.draft.matches)
        text = (
            f"Ambiguous include: Specified SLS {_ANY_ENVIRONMENT}: {wanted} is available on the salt master"
            f" in multiple available saltenvs: {envs}"
            if having
            else f"Unknown include: Specified SLS {_ANY_ENVIRONMENT}: {wanted} is not available on the salt master"
            f" in saltenv(s): {envs}"
        )
        self._fault(text, rendered, written)
        return None

    def _fault(self, text: str, rendered: RenderedSls, *wanted: str, hint: str = "") -> None:
        origin = {"__sls__": rendered.sls, "__env__": rendered.saltenv}
        self.faults.append(self.draft.fault(text, origin, "include", *wanted, hint=hint))
