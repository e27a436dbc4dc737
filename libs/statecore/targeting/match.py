"""Matchers of minions for all target types: the same for the master, the minion and the top file. Functions without
I/O.

``compile_target`` compiles an expression once; the matcher is then called for each minion. A fault in an expression
raises TargetError with the faulty word.

Source: docs/protocol.md#target-types
"""

from __future__ import annotations

import fnmatch
import hmac
import inspect
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

from statecore.model.errors import TargetError
from statecore.model.regex import expression
from statecore.targeting.compound import OPERATORS, compile_words, words_of
from statecore.targeting.nested import nested_match

DEFAULT_DELIMITER = ":"

#: Node groups may refer to each other. A deeper nesting means that a group refers to itself.
_MAX_GROUP_DEPTH = 20

#: Most characters of a glob. An id has at most 255; a grain's value may be longer.
_LONGEST_GLOB = 4096

#: Most parts of an expression KEY:KEY:VALUE. Every split into path and value is compared, so the time grows with the square.
_MOST_PARTS = 64

#: Characters of expressions. A word without them is a minion id.
_NOT_IN_IDS = frozenset("@*?[]()")


class Subject(NamedTuple):
    """The minion that a target is compared with: its id, grains and pillar."""

    id: str
    grains: Mapping[str, object]
    pillar: Mapping[str, object] = MappingProxyType({})
    #: False: the sender of the target may not look for this minion by address, so no ipcidr expression matches it.
    shows_addresses: bool = True


#: Grains of a minion that has not sent grains. As in Salt, only ipcidr targets expect such a minion.
UNKNOWN: Mapping[str, object] = MappingProxyType({})

Matcher: TypeAlias = Callable[[Subject], bool]

#: Resolves a range expression to minion ids. Raises TargetError.
Expand: TypeAlias = Callable[[str], Sequence[str]]


class Pattern(Protocol):
    """A compiled regular expression of a target."""

    def match(self, text: str, /) -> object:
        """Return something other than None when the pattern matches the beginning of the text."""


class Reading(NamedTuple):
    """Rules by which the patterns of a target are interpreted: the regular expression engine, and whether pillar values must
    match exactly.

    The default rules are those for operators' targets. Node groups always use the default, because the master's options
    define them.
    """

    #: (regular expression, ignore case) -> compiled pattern. Raises TargetError.
    regex: Callable[[str, bool], Pattern]
    #: True: words about pillar compare the exact value, and ``*`` is a text like any other, so that a sender cannot find
    #: out a value piece by piece.
    literal_pillar: bool = False


def python_regex(pattern: str, ignore_case: bool) -> Pattern:
    """Return a compiled regular expression with the results of the module ``re``. Raises TargetError if it is invalid."""
    try:
        return expression(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, RecursionError, OverflowError) as error:
        raise TargetError(f"'{pattern}' is not a valid regular expression: {error}") from error


SALTS_READING = Reading(python_regex)


class _Language(NamedTuple):
    delimiter: str
    nodegroups: Mapping[str, object]
    depth: int = 0
    #: True: words about pillar compare the exact value, not a glob or a regular expression.
    exact: bool = False
    #: Asks the range server for the minion ids of a range expression. None: there is no range server.
    ranges: Expand | None = None
    reading: Reading = SALTS_READING


def matches(
    tgt: object,
    tgt_type: str,
    subject: Subject,
    *,
    delimiter: str = DEFAULT_DELIMITER,
    nodegroups: Mapping[str, object] | None = None,
) -> bool:
    """Return True if a target of the type ``tgt_type`` matches the minion ``subject``. Raises TargetError."""
    return compile_target(tgt, tgt_type, delimiter=delimiter, nodegroups=nodegroups)(subject)


def users_matcher(matchers: Mapping[str, Callable[..., object]], tgt_type: str) -> Callable[..., bool] | None:
    """Return a function that tells if a target matches this minion, by the user's own matcher of a target type (``match`` in
    ``_matchers/TYPE_match.py``).

    None if there is no such matcher. It gets the target, and also ``delimiter`` and ``minion_id`` if it has these
    parameters.
    """
    own = matchers.get(f"{tgt_type}_match.match")
    if own is None:
        return None
    takes = inspect.signature(own).parameters

    def meant(target: object, **given: object) -> bool:
        return bool(
            own(target, **{name: value for name, value in given.items() if value is not None and name in takes})
        )

    return meant


def compile_target(
    tgt: object,
    tgt_type: str,
    *,
    delimiter: str = DEFAULT_DELIMITER,
    nodegroups: Mapping[str, object] | None = None,
    ranges: Expand | None = None,
    reading: Reading = SALTS_READING,
) -> Matcher:
    """Return a function that tells if a minion (a Subject) matches the target ``tgt``.

    Raises TargetError for an unknown target type and for an invalid expression.
    """
    compiler = MATCHERS.get(tgt_type)
    if compiler is None:
        raise TargetError(f"there is no target type '{tgt_type}'; there are {', '.join(sorted(MATCHERS))}")
    return compiler(tgt, _Language(delimiter, nodegroups or {}, ranges=ranges, reading=reading))


def _text(tgt: object, kind: str) -> str:
    if not isinstance(tgt, str):
        raise TargetError(f"a {kind} target must be text, not {tgt!r}")
    return tgt


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Return the compiled pattern of a glob, as fnmatch has it. Raises TargetError for one of more than 4,096 characters."""
    if len(glob) > _LONGEST_GLOB:
        raise TargetError(f"a glob has at most {_LONGEST_GLOB} characters, not {len(glob)}")
    head, bracket, rest = glob.rpartition("]")
    # fnmatch looks for the end of each bracket again, in quadratic time; behind the last one it finds none.
    return re.compile(fnmatch.translate(head + bracket + rest.replace("[", "[[]")))


def _glob(tgt: object, language: _Language) -> Matcher:
    pattern = glob_pattern(_text(tgt, "glob"))
    return lambda subject: pattern.match(subject.id) is not None


def _pcre(tgt: object, language: _Language) -> Matcher:
    pattern = language.reading.regex(_text(tgt, "pcre"), False)
    return lambda subject: pattern.match(subject.id) is not None


def _range(tgt: object, language: _Language) -> Matcher:
    return _list(",".join(_expanded(_text(tgt, "range"), language)), language)


def _expanded(expression: str, language: _Language) -> Sequence[str]:
    if language.ranges is None:
        raise TargetError(f"the range '{expression}' cannot be resolved: no range server is asked from here")
    return language.ranges(expression)


def _list(tgt: object, language: _Language) -> Matcher:
    names = tgt.split(",") if isinstance(tgt, str) else tgt
    if not isinstance(names, Sequence):
        raise TargetError(f"a list target must be a list of ids, not {tgt!r}")
    wanted = frozenset(str(name).strip() for name in names)
    return lambda subject: subject.id in wanted


def _grain(tgt: object, language: _Language) -> Matcher:
    return _nested(tgt, language, "grains", _glob_test)


def _grain_pcre(tgt: object, language: _Language) -> Matcher:
    return _nested(tgt, language, "grains", _regex_tests(language))


def _pillar(tgt: object, language: _Language) -> Matcher:
    return (
        _pillar_exact(tgt, language)
        if language.reading.literal_pillar
        else _nested(tgt, language, "pillar", _glob_test)
    )


def _pillar_pcre(tgt: object, language: _Language) -> Matcher:
    if language.reading.literal_pillar:
        return _pillar_exact(tgt, language)
    return _nested(tgt, language, "pillar", _regex_tests(language))


def _pillar_exact(tgt: object, language: _Language) -> Matcher:
    return _nested(tgt, language, "pillar", _exact_test, wildcards=not language.reading.literal_pillar)


def _ipcidr(tgt: object, language: _Language) -> Matcher:
    text = _text(tgt, "ipcidr")
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise TargetError(f"'{text}' is neither an address nor a network: {error}") from error
    grain = f"ipv{network.version}"
    version, mask, wanted = network.version, int(network.netmask), int(network.network_address)

    def match(subject: Subject) -> bool:
        grains = subject[1]
        if not subject[3]:
            return False
        if grains is UNKNOWN:
            return True
        value = grains.get(grain)
        for address in value if isinstance(value, list | tuple) else ():
            found, number = _address(address if type(address) is str else str(address))
            if found == version and number & mask == wanted:
                return True
        return False

    return match


@lru_cache(maxsize=100_000)
def _address(text: str) -> tuple[int, int]:
    """Return (IP version, address as a number); (0, 0) for an invalid address. Cached, because the same grains are
    compared often.
    """
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return 0, 0
    return found.version, int(found)


def _nodegroup(tgt: object, language: _Language) -> Matcher:
    name = _text(tgt, "nodegroup")
    if name not in language.nodegroups:
        raise TargetError(f"there is no node group '{name}' (option nodegroups)")
    if language.depth >= _MAX_GROUP_DEPTH:
        raise TargetError(f"the node group '{name}' names itself")
    return _compound(_group(name, language), language._replace(depth=language.depth + 1, reading=SALTS_READING))


def _group(name: str, language: _Language) -> str:
    """Return the compound expression of a node group. A group of several plain minion ids becomes one list
    expression ``L@a,b``.

    Raises TargetError if the group is neither text nor a list.
    """
    group = language.nodegroups[name]
    if not isinstance(group, str | list | tuple):
        raise TargetError(f"the node group '{name}' must be text or a list, not {group!r}")
    words = group.split() if isinstance(group, str) else [str(word) for word in group]
    plain = all(word not in OPERATORS and not set(word) & _NOT_IN_IDS for word in words)
    return "L@" + ",".join(words) if plain and len(words) > 1 else " ".join(words)


def expanded_target(
    tgt: object, tgt_type: str, nodegroups: Mapping[str, object], ranges: Expand | None = None
) -> tuple[object, str]:
    """Return (target, target type) with node groups and ranges replaced: minions do not know the master's node
    groups.

    Raises TargetError for an unknown node group, and for a range that cannot be resolved.
    """
    language = _Language(DEFAULT_DELIMITER, nodegroups, ranges=ranges)
    if tgt_type == "range":
        return list(_expanded(_text(tgt, "range"), language)), "list"
    if tgt_type == "nodegroup":
        tgt, tgt_type = f"N@{_text(tgt, 'nodegroup')}", "compound"
    if tgt_type != "compound" or not any(engine in str(tgt) for engine in ("N@", "R@")):
        return tgt, tgt_type
    # Raises TargetError for faults in the node groups.
    _compound(tgt, language)
    return " ".join(_spelled_out(_words(tgt), language)), tgt_type


def listed_ids(tgt: object, tgt_type: str, nodegroups: Mapping[str, object], ranges: Expand | None = None) -> list[str]:
    """Return the minion ids in the lists (``L@``) of a compound target, except lists after ``not``. Raises
    TargetError.
    """
    tgt, _ = expanded_target(tgt, tgt_type, nodegroups, ranges)
    words = _words(tgt)
    found: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if word.startswith("L@") and before != "not":
            found += [name for name in word[2:].split(",") if name]
    return found


def _spelled_out(words: Sequence[str], language: _Language) -> Iterator[str]:
    for word in words:
        if word.startswith("N@"):
            yield from ("(", *_spelled_out(words_of(_group(word[2:], language)), language), ")")
        elif word.startswith("R@"):
            yield "L@" + ",".join(_expanded(word[2:], language))
        else:
            yield word


# ------------------------------------------------------------------------------------------------------------ nested values


def _glob_test(pattern: str) -> Callable[[str], bool]:
    compiled = glob_pattern(pattern.lower())
    return lambda value: compiled.match(value.lower()) is not None


def _regex_tests(language: _Language) -> Callable[[str], Callable[[str], bool]]:
    """Return a function that compiles a regular expression (ignoring case) to a function from text to True or False.

    It raises TargetError for an invalid expression.
    """

    def test(pattern: str) -> Callable[[str], bool]:
        compiled = language.reading.regex(pattern, True)
        return lambda value: compiled.match(value) is not None

    return test


def _exact_test(pattern: str) -> Callable[[str], bool]:
    wanted = pattern.lower().encode("utf-8", "surrogatepass")
    # In constant time: a minion's target by another minion's pillar must not tell how much of a value was right.
    return lambda value: hmac.compare_digest(value.lower().encode("utf-8", "surrogatepass"), wanted)


def _nested(
    tgt: object,
    language: _Language,
    where: str,
    make_test: Callable[[str], Callable[[str], bool]],
    *,
    wildcards: bool = True,
) -> Matcher:
    expression, delimiter = _text(tgt, where), language.delimiter
    if delimiter not in expression:
        raise TargetError(f"'{expression}' must be KEY{delimiter}VALUE")
    parts = expression.split(delimiter)
    if len(parts) > _MOST_PARTS:
        raise TargetError(
            f"'{expression[:40]}...' has {len(parts)} parts between {delimiter}; {_MOST_PARTS} are allowed"
        )
    tests = _tests([delimiter.join(parts[at:]) for at in range(1, len(parts))], make_test)

    # Thousands of minions have the same few values.
    @cache
    def text_fits(value: str, pattern: str) -> bool:
        try:
            return (tests.get(pattern) or make_test(pattern))(value)
        except TargetError:
            # A part of the expression, split at another delimiter, that is not a valid regular expression.
            return False

    def fits(value: object, pattern: str) -> bool:
        return text_fits(value if type(value) is str else str(value), pattern)

    where_at = Subject._fields.index(where)
    plain = parts[0] if len(parts) == 2 and (parts[0] != "*" or not wildcards) else None
    last = parts[-1]

    def match(subject: Subject) -> bool:
        data = subject[where_at]
        # Fast path for the most frequent case: a grain that is a text or a list of texts.
        if plain is not None and type(data) is dict:
            value = data.get(plain)
            if type(value) is str:
                return text_fits(value, last)
            if type(value) is list and all(type(item) is str for item in value):
                return any(text_fits(item, last) for item in value)
        return nested_match(data, expression, fits, delimiter, wildcards=wildcards)

    return match


def _tests(
    patterns: Sequence[str], make_test: Callable[[str], Callable[[str], bool]]
) -> dict[str, Callable[[str], bool]]:
    """Map of each valid pattern to its test, the function that ``make_test`` returns. Invalid patterns are left out;
    raises TargetError if no pattern is valid.
    """
    found: dict[str, Callable[[str], bool]] = {}
    fault: TargetError | None = None
    for pattern in patterns:
        try:
            found[pattern] = make_test(pattern)
        except TargetError as error:
            fault = fault or error
    if fault is not None and not found:
        raise fault
    return found


# ---------------------------------------------------------------------------------------------------------------- compound

#: ``G@os:Debian``, or ``G|@os|Debian`` with another delimiter.
_WORD = re.compile(r"(?P<engine>[A-Z])(?P<delimiter>[^@\s\w])?@(?P<rest>.+)", re.DOTALL)

#: Letter before ``@`` in a compound target -> target type.
ENGINES: Mapping[str, str] = {
    "G": "grain",
    "P": "grain_pcre",
    "I": "pillar",
    "J": "pillar_pcre",
    "L": "list",
    "N": "nodegroup",
    "S": "ipcidr",
    "E": "pcre",
    "R": "range",
}

#: Letters whose words may name a delimiter.
_NESTED_ENGINES = frozenset("GPIJ")

_PILLAR_ENGINES = frozenset("IJ")


def _compound(tgt: object, language: _Language) -> Matcher:
    words = _words(tgt)
    if not words:
        raise TargetError("an empty compound target matches nobody; write '*' for everybody")
    return compile_words(words, lambda word: _word(word, language))


def _words(tgt: object) -> list[str]:
    return [str(word) for word in tgt] if isinstance(tgt, list | tuple) else words_of(_text(tgt, "compound"))


def _compound_pillar_exact(tgt: object, language: _Language) -> Matcher:
    return _compound(tgt, language._replace(exact=True))


def _word(word: str, language: _Language) -> Matcher:
    found = _WORD.fullmatch(word)
    if found is None:
        return _glob(word, language)
    engine, delimiter = found["engine"], found["delimiter"]
    if engine not in ENGINES:
        raise TargetError(
            f"'{word}': there is no engine '{engine}@'; there are {', '.join(f'{name}@' for name in ENGINES)}"
        )
    if delimiter and engine not in _NESTED_ENGINES:
        raise TargetError(f"'{word}': only {', '.join(sorted(_NESTED_ENGINES))} take a delimiter")
    kind = "pillar_exact" if language.exact and engine in _PILLAR_ENGINES else ENGINES[engine]
    return MATCHERS[kind](found["rest"], language._replace(delimiter=delimiter or DEFAULT_DELIMITER))


#: Target type -> function that compiles an expression to a matcher.
MATCHERS: Mapping[str, Callable[[object, _Language], Matcher]] = {
    "glob": _glob,
    "pcre": _pcre,
    "list": _list,
    "grain": _grain,
    "grain_pcre": _grain_pcre,
    "pillar": _pillar,
    "pillar_pcre": _pillar_pcre,
    "pillar_exact": _pillar_exact,
    "compound": _compound,
    "compound_pillar_exact": _compound_pillar_exact,
    "nodegroup": _nodegroup,
    "ipcidr": _ipcidr,
    "range": _range,
}
