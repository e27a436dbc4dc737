"""The renderer ``stateconf``: runs a template renderer and a data renderer on an SLS, and adds three things:
configuration that the SLS sets at its top, IDs that are local to their SLS, and states that mark its start and its end
(goal).

``#!stateconf [-G] [-o] [-s] [-p] [DATA [options] . TEMPLATE [options]]``; the default is ``yaml . jinja``.

Salt: salt/renderers/stateconf.py.
"""

from __future__ import annotations

import copy
import getopt
import posixpath
import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, NamedTuple

from statecore.model.errors import DataFault
from statecore.render.context import RenderContext, Renderer

#: Requisites whose references are renamed with the ID that they name.
_REQUISITES = tuple(
    f"{name}{end}" for end in ("", "_in") for name in ("require", "watch", "use", "listen", "onchanges", "onfail")
)

#: Requisites that say "after" and "before", for the order of ``-o`` and for extended configuration.
_AFTER = ("require", "watch", "listen", "onchanges", "onfail")
_BEFORE = tuple(f"{name}_in" for name in _AFTER)

#: Keys of an SLS that are no IDs.
_NO_IDS = ("include", "exclude", "extend")

_USAGE = """Usage: #!stateconf [-G] [-o] [-s] [-p] [DATA [options] . TEMPLATE [options]]
DATA is a renderer of data such as yaml, TEMPLATE one of templates such as jinja; each may have options.
  -G  make no goal state, which requires all other states of the SLS
  -o  order the states: each requires the one before it (only with yaml)
  -s  make the start state, which comes before the first state of the SLS
  -p  take high data from the renderer before this one"""

High = dict[str, Any]


class _Options(NamedTuple):
    """Options of the line ``#!stateconf`` of an SLS, and the two renderers that it names (for templates, for data)."""

    goal: bool
    ordered: bool
    start: bool
    high: bool
    #: Each with its options, such as "yaml" and "jinja -s".
    data: str
    template: str


class _Names(NamedTuple):
    """Names that the minion's options ``stateconf_*`` set: the state function that holds configuration, the IDs of the
    start state and the goal state, and the marker at the end of the configuration.
    """

    function: str
    start: str
    goal: str
    end: str

    @property
    def module(self) -> str:
        """Name of the state module of the function that holds configuration (``stateconf`` of ``stateconf.set``)."""
        return self.function.partition(".")[0]


class Values(dict[str, Any]):
    """The values that one state ``stateconf.set`` sets: a map whose values templates also read as attributes
    (``params.port``).
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Configuration:
    """The values that the states ``stateconf.set`` of one state tree have set so far, by full ID, and the values with
    which other SLS files extend them.
    """

    def __init__(self) -> None:
        #: Full ID such as ``web::params`` -> its values.
        self.values: dict[str, Values] = {}
        self._extending: dict[str, Values] = {}

    def take(self, high: High, names: _Names) -> None:
        """Store the values of each state ``stateconf.set`` in the high data of an SLS and in its ``extend``."""
        for id_, args in _configurations(high.get("extend"), names):
            self._extending.setdefault(id_, Values()).update(_pairs(args))
        for id_, args in _configurations(high, names):
            own = self.values.setdefault(id_, Values())
            own.update(_pairs(args))
            if (extended := self._extending.get(id_)) is not None:
                own.update({name: _joined(name, extended, own) for name in extended})

    def of(self, sls: str) -> dict[str, Values]:
        """Return the template variables of the SLS ``sls``: {ID of a ``stateconf.set``: its values}, with local IDs
        for those of this SLS and full IDs for all others.
        """
        return {id_.removeprefix(f"{sls}::"): values for id_, values in self.values.items()}


def _joined(name: str, extended: Values, own: Values) -> object:
    return [*extended[name], *own.get(name, [])] if name in _AFTER else extended[name]


def render(data: object, context: RenderContext) -> object:
    """Renderer ``stateconf``: return the high data of an SLS, in which local IDs (``.web``) are replaced by full ones
    (``sls::web``).

    Raise DataFault for wrong options and for data that this renderer cannot read; TemplateFault for the template.
    """
    options = _options(context.arguments)
    names = _names(context.opts)
    kept = context.kept.setdefault("stateconf", Configuration())
    assert isinstance(kept, Configuration)
    source = context.source
    if options.high:
        high = _processed(data, source.sls, source.saltenv, options, names)
        kept.take(high, names)
        return high
    text = str(data)
    if (head := re.search(names.end, text)) is not None:
        # The values above the marker are variables of the whole text.
        above = options._replace(goal=False, ordered=False)
        kept.take(_processed(_rendered(text[: head.start()], context, options), *source[:2], above, names), names)
    high = _processed(_rendered(text, context, options), *source[:2], options, names)
    kept.take(high, names)
    return high


def full_id(id_: str, sls: str) -> str:
    """Return the full form of an ID that begins with a dot: ``.web`` of the SLS ``a.b`` is ``a.b::web``, and
    ``.c::web`` is ``a.c::web``. Raise DataFault for more dots than the SLS has levels.
    """
    if "::" in id_:
        return _full_sls(id_, sls)
    return "::".join(_full_sls(id_, f"{sls}.").rsplit(".", 1))


def variables(sls: str, kept: MutableMapping[str, object]) -> dict[str, object]:
    """Return the template variables that the renderer ``stateconf`` adds for an SLS: ``sls_dir``, and the values of
    each ``stateconf.set`` so far.

    ``kept`` is the map in which renderers keep data between the SLS files of a state tree.
    """
    configuration = kept.setdefault("stateconf", Configuration())
    assert isinstance(configuration, Configuration)
    directory = posixpath.dirname(sls.replace(".", "/")) or sls or "."
    return {"sls_dir": directory, **configuration.of(sls)}


def with_full_ids(
    positions: Mapping[tuple[str, ...], tuple[int, int]], sls: str
) -> dict[tuple[str, ...], tuple[int, int]]:
    """Return ``positions`` ({path of keys in an SLS: (line, column)}) with local IDs (``.web``) in the paths replaced
    by full ones (``sls::web``).
    """
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for path, place in positions.items():
        try:
            found[
                tuple(full_id(key, sls) if key.startswith(".") and at < 2 else key for at, key in enumerate(path))
            ] = place
        except DataFault:
            found[path] = place
    return found


def inner_pipe(arguments: str) -> list[str]:
    """Return the names of the two renderers that the options of ``stateconf`` name, in the order in which they run; []
    if the options are wrong or name none (``-p``).
    """
    try:
        options = _options(arguments)
    except DataFault:
        return []
    return [] if options.high else [each.partition(" ")[0] for each in (options.template, options.data)]


# ------------------------------------------------------------------------------------------------------------- options


def _options(arguments: str) -> _Options:
    try:
        given, rest = getopt.getopt(arguments.split(), "Gosp")
    except getopt.GetoptError as error:
        raise DataFault(f"stateconf: {error}\n{_USAGE}", 1) from error
    letters = {letter for letter, _ in given}
    # A dot that belongs to an option is written with a backslash.
    parts = re.split(r"\s+(?<!\\)\.\s+", " ".join(rest) or "yaml . jinja", maxsplit=1)
    pair = [part.strip().replace("\\.", ".") for part in parts]
    if "-p" not in letters and len(pair) != 2:
        raise DataFault(f"stateconf: '{' '.join(rest)}' does not name two renderers\n{_USAGE}", 1)
    options = _Options("-G" not in letters, "-o" in letters, "-s" in letters, "-p" in letters, pair[0], pair[-1])
    if options.ordered and not options.high and options.data.partition(" ")[0] != "yaml":
        raise DataFault("Implicit ordering is only supported if the yaml renderer is used!", 1)
    return options


def _names(opts: Mapping[str, object]) -> _Names:
    return _Names(
        str(opts.get("stateconf_state_func") or "stateconf.set"),
        str(opts.get("stateconf_start_state") or ".start"),
        str(opts.get("stateconf_goal_state") or ".goal"),
        str(opts.get("stateconf_end_marker") or r"#\s*-+\s*end of state config\s*-+"),
    )


# ------------------------------------------------------------------------------------------------------------ rendering


def _rendered(text: str, context: RenderContext, options: _Options) -> object:
    """Return the data that the template renderer and the data renderer of the options make of a text. Raise DataFault
    for an unknown renderer.
    """
    values = variables(context.source.sls, context.kept)
    names = {**context.names, **values}
    data: object = text
    for stage in (options.template, options.data):
        name, _, arguments = stage.partition(" ")
        renderer: Renderer | None = context.renderer(name)
        if renderer is None:
            raise DataFault(f"Renderer: '{name}' is not available!", 1)
        data = renderer(data, context._replace(names=names, arguments=arguments.strip()))
    return data


def _processed(data: object, sls: str, saltenv: str, options: _Options, names: _Names) -> High:
    """Return the high data of an SLS in its final form: with full IDs and full SLS references, and as the options say
    with ordered states, a start state and a goal state. Raise DataFault for malformed data.
    """
    if data in (None, ""):
        data = {}
    if not isinstance(data, Mapping):
        raise DataFault(f"stateconf: the SLS renders to {type(data).__name__}, and must render to a map of IDs", 1)
    high: High = copy.deepcopy(dict(data))
    _check(high)
    _make_full_slses(high, sls, saltenv)
    if options.ordered:
        _order(high)
    if options.start:
        _add_start(high, sls, names)
    if options.goal:
        _add_goal(high, names)
    return _with_full_ids(high, sls, names)


def _check(high: High) -> None:
    """Replace the short form ``id: pkg.installed`` in the high data by its long form, in place. Raise DataFault for an
    ID or a declaration of a wrong form.
    """
    for id_, body in list(high.items()):
        if id_ in ("include", "exclude") or str(id_).startswith("__"):
            continue
        if isinstance(body, str):
            high[id_] = body = {body: []}
        if not isinstance(id_, str):
            kind = type(id_).__name__
            raise DataFault(f"ID '{id_}' in an SLS of stateconf is not formed as a string, but is a {kind}", 0)
        if not isinstance(body, Mapping):
            raise DataFault(f"ID '{id_}' in an SLS of stateconf is not formed as a dictionary", 0)
        if id_ == "extend":
            _check(high[id_])
            continue


# --------------------------------------------------------------------------------------------------------- full names


def _full_sls(relative: str, sls: str) -> str:
    dots = len(relative) - len(relative.lstrip("."))
    levels = sls.split(".")
    if dots > len(levels):
        raise DataFault(f"Attempted relative include goes beyond top level package: '{relative}' in SLS '{sls}'", 0)
    return ".".join([*levels[:-dots], relative[dots:]])


def _make_full_slses(high: High, sls: str, saltenv: str) -> None:
    """Replace relative SLS references (``.common``) in ``include`` and ``exclude`` of the high data by full ones, in
    place. Raise DataFault for more dots than the SLS has levels.
    """
    includes = high.get("include")
    for index, entry in enumerate(includes if isinstance(includes, list) else ()):
        env, wanted = next(iter(entry.items())) if isinstance(entry, Mapping) and entry else (saltenv, entry)
        if isinstance(wanted, str) and wanted.startswith("."):
            high["include"][index] = {env: _full_sls(wanted, sls)}
    excludes = high.get("exclude")
    for entry in excludes if isinstance(excludes, list) else ():
        if isinstance(entry, MutableMapping) and str(entry.get("sls", "")).startswith("."):
            entry["sls"] = _full_sls(entry["sls"], sls)


def _with_full_ids(high: High, sls: str, names: _Names) -> High:
    """Return high data with local IDs (``.web``) replaced by full ones (``sls::web``), in declarations and requisites.
    As in Salt, renamed IDs come last. Raise DataFault if a full ID exists already.
    """
    if isinstance(high.get("extend"), dict):
        high["extend"] = _with_full_ids(high["extend"], sls, names)
    for _, _, args in _states(high):
        for reference, module, id_ in _references(args, _REQUISITES):
            if isinstance(id_, str) and id_.startswith("."):
                reference[module] = full_id(id_, sls)
    found = {id_: body for id_, body in high.items() if not id_.startswith(".")}
    for id_ in (each for each in high if each.startswith(".")):
        full = full_id(id_, sls)
        if full in found:
            raise DataFault(f"Can't rename state id({id_}) into {full} because the later already exists!", 0)
        for state, args in high[id_].items():
            if not isinstance(args, list) or _module(state) == names.module:
                continue
            if not any(isinstance(each, Mapping) and next(iter(each), "") == "name" for each in args):
                args.insert(0, {"name": id_[1:]})
        found[full] = high[id_]
    return found


# --------------------------------------------------------------------------------------------------------------- order


def _order(high: High) -> None:
    """Make each state of the high data require the state before it, in place. Raise DataFault for the argument
    ``names``, and for a requisite against that order.
    """
    for id_, _, args in _states(high):
        if next(_named(args, ("names",)), None) is not None:
            text = f"'names' declaration(found in state id: {id_}) is not supported with implicitly ordered states!"
            raise DataFault(f"{text} Write a loop of the template that makes the states", 0)
    extended: dict[tuple[str, str], list[Any]] = {}
    for id_, state, args in _states(high.get("extend") or {}):
        extended.setdefault((_module(state), id_), []).extend(args)
    order = [(_module(state), id_) for id_, state, _ in _states(high)]
    previous: tuple[str, str] | None = None
    for at, (id_, state, args) in enumerate(_states(high)):
        whole = [*args, *extended.get((_module(state), id_), ())]
        for requisites, forbidden, words in (
            (_AFTER, order[at + 1 :], "can't require/watch/listen/onchanges/onfail a state({}) defined after it!"),
            (
                _BEFORE,
                order[:at],
                "can't require_in/watch_in/listen_in/onchanges_in/onfail_in a state({}) defined before it!",
            ),
        ):
            for _, module, other in _references(whole, requisites):
                if (_module(module), other) in forbidden:
                    raise DataFault(f"State({id_}:{_module(state)}) {words.format(f'{other}:{_module(module)}')}", 0)
        if previous is not None:
            _require_first(args, dict([previous]))
        previous = (_module(state), id_)


def _require_first(args: list[Any], reference: dict[str, str]) -> None:
    known = next(_named(args, ("require",)), None)
    if known is None:
        args.append({"require": [reference]})
    else:
        known["require"] = [reference, *known["require"]]


def _add_start(high: High, sls: str, names: _Names) -> None:
    """Add a start state to the high data: one that the first state of the SLS requires, so that it runs before it.
    Raise DataFault if its ID is taken.
    """
    if names.start in high:
        text = f"Can't generate start state({names.start})! The same state id already exists!"
        raise DataFault(text, 0)
    if not high:
        return
    # States that another renderer included have the reference of their own SLS.
    own = (id_ for id_, body in high.items() if _is_id(id_) and body.get("__sls__", sls) == sls)
    first = next(own, None)
    if first is None:
        raise DataFault("Can't determine the first state in the sls file!", 0)
    high[names.start] = {names.function: [{"require_in": [{_module(next(iter(high[first]))): first}]}]}


def _add_goal(high: High, names: _Names) -> None:
    """Add a goal state to the high data: one that requires all states of the SLS. Raise DataFault if its ID is taken."""
    if names.goal in high:
        raise DataFault(f"Can't generate goal state({names.goal})! The same state id already exists!", 0)
    # States that another renderer included have the reference of their own SLS.
    required = [{_module(state): id_} for id_, state, _ in _states(high) if "__sls__" not in high[id_]]
    high[names.goal] = {names.function: [{"require": required}]}


# --------------------------------------------------------------------------------------------------------- high data


def _is_id(key: str) -> bool:
    return key not in _NO_IDS and not key.startswith("__")


def _module(state: str) -> str:
    return state.partition(".")[0]


def _states(high: Mapping[str, Any]) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield (ID, state declaration, argument list) of each state in high data. A malformed argument list is yielded as
    []: the compiler reports it.
    """
    for id_, body in high.items():
        if _is_id(id_):
            for state, args in body.items():
                if not state.startswith("__"):
                    yield id_, state, args if isinstance(args, list) else []


def _named(args: list[Any], names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield those maps in a state's argument list that hold one of the arguments ``names``."""
    return (each for each in args if isinstance(each, dict) and next(iter(each), "") in names)


def _references(args: list[Any], requisites: tuple[str, ...]) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Yield (map of the reference, state module, ID) for each reference ``{module: ID}`` in the given requisites of a
    state's argument list.
    """
    for each in _named(args, requisites):
        listed = next(iter(each.values()))
        for reference in listed if isinstance(listed, list) else ():
            if isinstance(reference, dict) and reference:
                yield reference, *next(iter(reference.items()))


def _configurations(high: object, names: _Names) -> Iterator[tuple[str, list[Any]]]:
    """Yield (ID, argument list) of each state in the high data that holds configuration (``stateconf.set``)."""
    for id_, body in high.items() if isinstance(high, Mapping) else ():
        for key in (names.module, names.function):
            if _is_id(id_) and isinstance(body.get(key), list):
                yield id_, body[key]
                break


def _pairs(args: list[Any]) -> dict[str, Any]:
    """Return a state's argument list as one map of argument to value."""
    return dict(next(iter(each.items())) for each in args if isinstance(each, Mapping) and each)
