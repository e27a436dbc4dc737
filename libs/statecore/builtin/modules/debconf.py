"""Answers to the questions of Debian packages (debconf), which packages ask when they are installed: Salt's ``debconf``
execution module.

The host needs Debian's package debconf-utils.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from statecore.model.context import Context
from statecore.model.errors import CommandError

ALIASES = {"set": "set_"}

_READER = "debconf-get-selections"
_WRITER = "debconf-set-selections"

#: A line of debconf-get-selections: package, question, type, value. Lines that begin with # are comments.
_LINE = re.compile(r"^([^#\s]\S+)[\t ]+(\S+)[\t ]+(\S+)[\t ]+(.*)$", re.MULTILINE)


def available(ctx: Context) -> str | None:
    """Return None if the host is a Debian with debconf-utils; else return the reason as text."""
    if ctx.grains.get("os_family") != "Debian":
        return "debconf belongs to the systems of the family Debian"
    return None if ctx.host.which(_READER) else f"the host has no {_READER}: install its package debconf-utils"


def get_selections(ctx: Context, fetchempty: bool = True) -> dict[str, list[list[str]]]:
    """Return the answers of all packages: a map of package to a list of [question, type, value].

    fetchempty
        False: leave out questions whose answer is empty

    CLI Example:

        salt '*' debconf.get_selections
    """
    return parse(ctx.host.run([_READER]).stdout, empty=fetchempty)


def show(ctx: Context, name: str) -> list[list[str]] | None:
    """Return the answers of a package: a list of [question, type, value]; None if debconf does not know the package.

    CLI Example:

        salt '*' debconf.show tzdata
    """
    return get_selections(ctx).get(name)


def set_(ctx: Context, package: str, question: str, type: str, value: object, *extra: object) -> bool:
    """Set the answer to a question of a package. Return True; False if debconf refuses it.

    type
        the question's type: boolean, string, select, multiselect, password, note, text
    value
        the answer. Further arguments are joined to it with blanks.

    CLI Example:

        salt '*' debconf.set tzdata tzdata/Areas select Europe
    """
    answer = " ".join(str(each) for each in (value, *extra))
    return _write(ctx, f"{package} {question} {type} {answer}\n")


def set_template(
    ctx: Context,
    path: str,
    template: str,
    context: Mapping[str, object] | None,
    defaults: Mapping[str, object] | None,
    saltenv: str | None = None,
    **kwargs: object,
) -> bool:
    """Set the answers in a template of the state tree. Return True; False if the tree does not have the file.

    path
        file of the state tree, such as salt://debconf/pkg.selections.jinja
    template
        the template engine: jinja ...
    context, defaults
        variables of the template; ``context`` replaces ``defaults``
    saltenv
        the environment of the state tree; other arguments are variables of the template too

    CLI Example:

        salt '*' debconf.set_template salt://pkg.selections.jinja jinja None None
    """
    file = _fetched(ctx, path, saltenv)
    if file is None:
        return False
    names = {**kwargs, **(defaults or {}), **(context or {})}
    text = ctx.templates.render(file.read_text("utf-8"), template, names, saltenv=saltenv or ctx.saltenv, source=path)
    return _write(ctx, text)


def set_file(ctx: Context, path: str, saltenv: str | None = None, **kwargs: object) -> bool:
    """Set the answers in a file of the state tree. Return True; False if the tree does not have the file.

    saltenv
        the environment of the state tree; other arguments are ignored, as in Salt

    CLI Example:

        salt '*' debconf.set_file salt://pkg.selections
    """
    file = _fetched(ctx, path, saltenv)
    return file is not None and _write(ctx, file.read_text("utf-8"))


def parse(text: str, *, empty: bool = True) -> dict[str, list[list[str]]]:
    """Return the output of debconf-get-selections as a map of package to a list of [question, type, value]."""
    found: dict[str, list[list[str]]] = {}
    for package, *answer in _LINE.findall(text):
        if empty or answer[-1]:
            found.setdefault(package, []).append(answer)
    return found


def _fetched(ctx: Context, path: str, saltenv: str | None) -> Path | None:
    file = ctx.call("cp.cache_file", path, saltenv)
    return Path(file) if file else None


def _write(ctx: Context, text: str) -> bool:
    # Through its standard input, so that a password is in no file.
    done = ctx.host.run([_WRITER], stdin=text)
    if done.retcode and not done.stderr.strip():
        raise CommandError(f"{_WRITER} failed with exit code {done.retcode}")
    return done.retcode == 0
