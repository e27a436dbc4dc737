"""Parses the words of a command line as Salt does: ``name=value`` is a keyword argument, and a value may be YAML.

salt, salt-run and salt-call share this module, so a value means the same to each of them. A word whose letters YAML would return
unchanged is not given to the YAML parser.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping

from statecore.model import yaml
from statecore.model.errors import InvocationError

#: ``name=value``, but not ``name==value``.
_KEYWORD = re.compile(r"([^\d\W][\w.-]*)=(?!=)(.*)\Z", re.DOTALL)

#: ``name=value`` in a publication. As in Salt, the value is one line, and one line end behind it is left out.
_SENT_KEYWORD = re.compile(r"([^\d\W][\w.-]*)=(?!=)(.*)$")

#: A word that starts like a name or a path, without characters that mean something in YAML. YAML's own words are in _RESERVED.
_PLAIN = re.compile(r"[A-Za-z_/][\w./@*+,=-]*\Z", re.ASCII)

_RESERVED = frozenset({"true", "false", "yes", "no", "on", "off", "null", "none"})

#: Most characters of one argument in a request that are read as YAML. What a user types into a command has no such limit.
MOST_SENT = 65_536
#: The same for all arguments of a request that begin like lists or maps.
MOST_TOGETHER = 262_144

#: Digits with underscores: YAML would join them to a number.
_GROUPED_DIGITS = re.compile(r"(?=.*_)[\d_]+\Z", re.ASCII)


def sent_value(name: str, text: str) -> object:
    """Return the value of one argument's text in a request: as ``value_of`` does if it has at most MOST_SENT characters.

    A longer text stays text. Raise InvocationError if it is a longer list or map, which a sender can send as such.
    """
    if len(text) <= MOST_SENT:
        return value_of(text)
    check_length(name, text)
    return text


def check_together(given: Iterable[object]) -> None:
    """Raise InvocationError if the arguments' texts of one request that begin like lists or maps have more than
    MOST_TOGETHER characters in all.
    """
    texts = (found[2] if (found := _KEYWORD.match(one)) else one for one in given if isinstance(one, str))
    together = sum(len(text) for text in texts if text.lstrip(" ").startswith(("[", "{")))
    if together > MOST_TOGETHER:
        raise InvocationError(
            f"the lists and maps that the arguments hold as text have {together} characters; at most {MOST_TOGETHER}"
            " are read as YAML: send lists and maps themselves (JSON body of the API, salt's command line)"
        )


def check_length(name: str, text: str) -> None:
    """Raise InvocationError if an argument's text begins like a list or a map and has more than MOST_SENT characters."""
    if len(text) > MOST_SENT and text.lstrip(" ").startswith(("[", "{")):
        raise InvocationError(
            f"the argument {name} is a list or map of {len(text)} characters as text; at most {MOST_SENT} are read as"
            " YAML: send the list or map itself (JSON body of the API, salt's command line), or read it from a file"
        )


def value_of(word: str) -> object:
    """Return the value of a command-line word: a number, a boolean, None, a ``[list]``, a ``{mapping}``, else the word itself."""
    if _PLAIN.match(word) and word.lower() not in _RESERVED:
        return word
    stripped = word.strip()
    if stripped in ("", "---", "...") or _GROUPED_DIGITS.match(stripped) or any(mark in word for mark in "\t\r\n"):
        return word
    if word == "None":
        return None
    try:
        value = yaml.load(word, yaml.ARGUMENT)
    except yaml.YamlFault:
        # A word that is not valid YAML stays text: `salt '*' cmd.run 'echo "{"'`.
        return word
    return value if _is_meant(word, value) else word


def _is_meant(word: str, value: object) -> bool:
    """Return whether YAML's value of a command-line word is the one the user typed.

    A list or mapping counts only if the word has brackets. A text counts only if YAML removed nothing as a comment.
    """
    if "#" in word:
        return not (value is None or isinstance(value, str))
    if isinstance(value, dict):
        return word.startswith("{")
    if isinstance(value, list):
        return word.startswith("[")
    if value is None or value == "":
        return word not in ("|", "!")
    return isinstance(value, str | int | float)


def parse_arguments(
    words: Iterable[str], no_parse: Iterable[str] = (), *, sent: bool = False
) -> tuple[list[object], dict[str, object]]:
    """Return (positional, keyword) arguments of an execution function from the words of a command line.

    Values of the keywords in ``no_parse`` stay texts. ``sent``: the words came in a request. Then one of more than
    MOST_SENT characters is not parsed; raise InvocationError if it is a list or map.
    """
    read = sent_value if sent else _typed_value
    as_text = frozenset(no_parse)
    positional: list[object] = []
    keyword: dict[str, object] = {}
    for word in words:
        match = _KEYWORD.match(word)
        if match is None or "\n" in word:
            positional.append(_not_a_jid(read(str(len(positional) + 1), word)))
        else:
            name, text = match.groups()
            keyword[name] = text if name in as_text else read(name, text)
    return positional, keyword


def on_the_wire(positional: Iterable[object], keyword: Mapping[str, object]) -> list[object]:
    """Return positional and keyword arguments as one list, the field ``arg`` of a publication.

    All keyword arguments are in one mapping with ``__kwarg__: True``, the last element of the list. A minion of Saltern
    0.1 reads a positional text ``name=value`` as a keyword argument, too; the mapping comes last, because such a minion
    keeps the later of two values of one name.
    """
    arguments = list(positional)
    if keyword:
        arguments.append({"__kwarg__": True, **keyword})
    return arguments


def sendable(keyword: Mapping[str, object]) -> dict[str, object]:
    """Return a runner's keyword arguments with each JID as text: YAML reads a JID as a number that no message can carry."""
    return {name: _not_a_jid(value) for name, value in keyword.items()}


def read_arguments(given: Iterable[object], *, sent: bool = False) -> tuple[list[object], dict[str, object]]:
    """Return the (positional, keyword) arguments of an execution function from the list ``arg`` of a publication.

    This is the only reading of that list: the master decides by it who may publish the job, and publishes what it read;
    minions call the function by it. A map with ``__kwarg__: True`` holds keyword arguments, and so does a text
    ``name=value`` of one line; a later one replaces an earlier one of the same name. Every other value is positional.
    ``sent``: the list came in a request to the master. Then a text of more than MOST_SENT characters is not parsed;
    raise InvocationError if it is a list or map.
    Salt: salt/minion.py, load_args_and_kwargs
    """
    read = sent_value if sent else _typed_value
    positional: list[object] = []
    keyword: dict[str, object] = {}
    given = list(given)
    if sent:
        check_together(given)
    for one in given:
        if isinstance(one, Mapping) and "__kwarg__" in one:
            named = {str(name): value for name, value in one.items() if name != "__kwarg__"}
            if one["__kwarg__"] is True:
                keyword |= named
            else:
                # Salt's minions remove the mark from a map that is an ordinary argument.
                positional.append(named)
        elif isinstance(one, str) and (match := _SENT_KEYWORD.match(one)):
            keyword[match[1]] = read(match[1], match[2])
        else:
            positional.append(one)
    return positional, keyword


def _typed_value(name: str, text: str) -> object:
    return value_of(text)


def _not_a_jid(value: object) -> object:
    # A JID looks like a number to YAML, and is larger than msgpack can carry.
    return str(value) if isinstance(value, int) and len(str(value)) == 20 else value


def documentation(fun: str, text: str) -> str:
    """Return the documentation ``text`` of the function ``fun`` as ``sys.doc`` prints it, without the indentation of the source."""
    return f"{fun}:\n\n{textwrap.indent(inspect.cleandoc(text), '    ')}\n"
