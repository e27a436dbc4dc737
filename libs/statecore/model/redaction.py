"""Table of secrets: decides which parts of a state run and of a job's arguments are hidden. Pure.

Logs, events, the audit record, state returns and the listings of jobs ask this table. Two kinds of secrets:

* Low chunks: ``no_log`` hides name, comment and changes, as in Salt. ``output_loglevel: quiet`` hides the text of the
  command; Salt hides it in logs only. ``hide_output`` is applied where the command runs (modules/cmd).
* Arguments of a function (SECRET_NAME, SECRET_POSITIONS): the values of arguments whose names say that they are secret.

All other names, comments and outputs are shown as Salt shows them.

Source: docs/security.md#secrets
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from statecore.model.types import Low, Running, RunningEntry, tag
from statecore.model.values import MASK, redacted

#: Arguments that contain a secret: the name itself, or its last words (``db_password``).
SECRET_NAME = re.compile(
    r"(?:.*[_.:-])?(?:password|passwd|passphrase|pwd|secret|token|credential|identity"
    r"|private[_-]?key|priv[_-]?key|api[_-]?key|secret[_-]?key|access[_-]?key|password[_-]hash|connection_pass)s?",
    re.IGNORECASE,
)

#: Function -> positions (from 0) of its secret positional arguments.
SECRET_POSITIONS: Mapping[str, tuple[int, ...]] = {
    "shadow.set_password": (1,),
    "shadow.gen_password": (0,),
    "debconf.set": (3,),
    "sdb.set": (1,),
    "mysql.user_create": (2,),
    "mysql.user_chpass": (2,),
    "hashutil.hmac_signature": (1,),
    "hashutil.hmac_compute": (1,),
    "hashutil.github_signature": (1,),
}

#: Keys of a state return that ``no_log`` hides. Salt hides the first three.
_NO_LOG_KEYS = ("name", "comment", "changes", "pchanges", "data", "warnings")

#: A text shorter than this is replaced only where it is the whole text: it is part of too many words.
_SHORTEST = 4

#: Levels of nested values that are searched; deeper values are hidden.
_DEPTH = 20

#: Word of a command line that names its argument.
_NAMED = re.compile(r"([A-Za-z_][\w.:-]*)=(?=.)", re.DOTALL)


# ------------------------------------------------------------------------------------------------------ states


def is_quiet(options: Mapping[str, object]) -> bool:
    """Return True if the arguments of a command or state contain ``output_loglevel: quiet``."""
    level = options.get("output_loglevel")
    return isinstance(level, str) and level.lower() == "quiet"


def is_hidden(low: Mapping[str, object]) -> bool:
    """Return True if the name of a low chunk is hidden (``no_log`` or ``output_loglevel: quiet``)."""
    return bool(low.get("no_log")) or is_quiet(low)


def shown_name(low: Mapping[str, object]) -> object:
    """Return the name of a low chunk for a log line or a return; ``**********`` if it is hidden."""
    return MASK if is_hidden(low) else low["name"]


def shown_id(low: Mapping[str, object]) -> str:
    """Return the state ID of a low chunk. If the chunk's command is hidden, the command is removed from the ID, because
    the ID is the default command.

    Other states with ``no_log`` keep their ID, as in Salt: users need it to find the state.
    """
    own = str(low["__id__"])
    return _without(own, _secrets(low)) if is_quiet(low) or (low.get("no_log") and low.get("state") == "cmd") else own


def shown_text(low: Mapping[str, object], text: str) -> str:
    """Return a text about a low chunk, such as a step of its plan, without the chunk's secrets, for a log line.

    With ``no_log`` the whole text is replaced by ``**********``.
    """
    if low.get("no_log"):
        return MASK
    return _without(text, _secrets(low)) if is_quiet(low) else text


def shown_return(low: Mapping[str, object], returned: dict[str, object]) -> dict[str, object]:
    """Return the state return of a low chunk without its secrets; ``returned`` itself if the chunk has none."""
    if low.get("no_log"):
        return {**returned, **{key: redacted(returned[key]) for key in _NO_LOG_KEYS if key in returned}}
    if is_quiet(low):
        secrets = _secrets(low)
        return {key: _cut(value, secrets) for key, value in returned.items()}
    return returned


def shown_tag(low: Mapping[str, object]) -> str:
    """Return the key of a low chunk in the running dictionary, with ``**********`` for a hidden name."""
    return tag({**low, "name": MASK, "__id__": shown_id(low)}) if is_hidden(low) else tag(low)


def shown_running(running: Running, chunks: Iterable[Low]) -> Running:
    """Return a running dictionary whose keys contain no hidden name. ``chunks`` are the low chunks of the run.

    Keys that become equal get the run number of their entry behind the name.
    """
    hidden: dict[str, Mapping[str, object]] = {}
    for low in chunks:
        if is_hidden(low):
            listener = {**low, "__id__": f"listener_{low['__id__']}", "fun": "mod_watch"}
            hidden |= {tag(low): low, tag(listener): listener}
    if not hidden:
        return running
    shown: Running = {}
    for key, entry in running.items():
        low_of_key = hidden.get(key)
        name = key if low_of_key is None else shown_tag(low_of_key)
        if low_of_key is not None and name in shown:
            number = f"{MASK}{entry.get('__run_num__')}"
            name = tag({**low_of_key, "name": number, "__id__": shown_id(low_of_key)})
        shown[name] = _shown_entry(low_of_key, entry)
    return shown


def _shown_entry(low: Mapping[str, object] | None, entry: RunningEntry) -> RunningEntry:
    """Return the running dictionary's entry of a state that was not called, with ``**********`` in place of the state's
    name.
    """
    if low is None or entry.get("name") != low["name"]:
        return entry
    return {**entry, "name": MASK}


def _secrets(low: Mapping[str, object]) -> list[str]:
    """Texts of a quiet chunk that are hidden: its command, and the arguments and standard input of the command."""
    texts = [str(low[key]) for key in ("name", "args", "stdin") if low.get(key)]
    return sorted({form for text in texts for form in (text, text.strip())}, key=len, reverse=True)


def _without(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        if text == secret:
            return MASK
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, MASK)
    return text


def _cut(value: object, secrets: Sequence[str], depth: int = _DEPTH) -> object:
    """Return a copy of a value of a state return without the texts ``secrets``."""
    if isinstance(value, str):
        return _without(value, secrets)
    if not depth:
        return MASK if isinstance(value, Mapping | list | tuple) else value
    if isinstance(value, Mapping):
        return {_cut(key, secrets, depth - 1): _cut(item, secrets, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(item, secrets, depth - 1) for item in value]
    return value


# --------------------------------------------------------------------------------------------------- arguments


def is_secret_name(name: object) -> bool:
    """Return True if an argument of this name contains a secret (``password``, ``db_password``, ``api-key``)."""
    return isinstance(name, str) and _is_secret_name(name[-_LONGEST_NAME:])


@lru_cache(4096)
def _is_secret_name(name: str) -> bool:
    return SECRET_NAME.fullmatch(name) is not None


#: Characters at the end of a name that are compared.
_LONGEST_NAME = 40


def shown_arguments(fun: object, arguments: object) -> object:
    """Return the arguments of a job (``arg`` or ``fun_args``) with ``**********`` for secret values.

    ``fun`` is a function, or the list of functions of a job with several; ``arguments`` then is a list of lists. The
    same object is returned if nothing is hidden or if it is not a list.
    """
    if not isinstance(arguments, list | tuple) or not arguments:
        return arguments
    if isinstance(fun, list | tuple):
        parts = [shown_arguments(name, part) for name, part in zip(fun, arguments, strict=False)]
        return [*parts, *arguments[len(parts) :]]
    positions = SECRET_POSITIONS.get(fun.removeprefix("runner."), ()) if isinstance(fun, str) else ()
    named = [one for one in arguments if isinstance(one, Mapping)]
    if not positions and not any(
        isinstance(one, Mapping | list | tuple) or (isinstance(one, str) and "=" in one) for one in arguments
    ):
        return arguments
    options = {str(key): value for one in named for key, value in one.items()}
    words = _command_words(fun, options)
    return [
        _hide(one)
        if at in positions or (words.hidden_from <= at and not isinstance(one, Mapping))
        else _shown(one, words)
        for at, one in enumerate(arguments)
    ]


class _CommandWords(NamedTuple):
    """Arguments of a quiet command, or of ``state.single`` for a hidden state, that are hidden whatever their names are."""

    #: First position of the hidden positional arguments; infinity: none.
    hidden_from: float = math.inf
    #: Names of hidden arguments.
    names: frozenset[str] = frozenset()


def _command_words(fun: object, options: Mapping[str, object]) -> _CommandWords:
    if fun == "state.single" and is_hidden(options):
        kept = {"fun", "no_log", "output_loglevel", "test", "__kwarg__", "saltenv", "queue"}
        return _CommandWords(1, frozenset(options.keys() - kept))
    if isinstance(fun, str) and fun.startswith("cmd.") and is_quiet(options):
        return _CommandWords(1 if fun in _SECOND else 0, frozenset({"cmd", "args", "stdin", "env", "code"}))
    if fun == "wheel.minions.import_data":
        # Pillar of minions.
        return _CommandWords(0, frozenset({"data"}))
    return _CommandWords()


#: Functions whose command is the second argument.
_SECOND = frozenset({"cmd.run_chroot", "cmd.exec_code", "cmd.exec_code_all"})


def _shown(one: object, words: _CommandWords) -> object:
    if isinstance(one, Mapping):
        return {key: _hide(value) if key in words.names else value for key, value in _map(one).items()}
    if isinstance(one, str):
        found = _NAMED.match(one)
        return f"{found[1]}={MASK}" if found and is_secret_name(found[1]) else one
    return _value(one, _DEPTH)


def _map(one: Mapping[object, object], depth: int = _DEPTH) -> dict[object, object]:
    return {key: _hide(value) if is_secret_name(key) else _value(value, depth - 1) for key, value in one.items()}


def _value(value: object, depth: int) -> object:
    if isinstance(value, Mapping):
        return _map(value, depth) if depth > 0 else MASK
    if isinstance(value, list | tuple):
        return [_value(item, depth - 1) for item in value] if depth > 0 else MASK
    return value


def _hide(value: object) -> object:
    """Return ``**********`` for a value. Booleans, None and empty values are returned unchanged: they show only whether
    there is a secret.
    """
    return value if isinstance(value, bool) or not value else MASK


def is_masked(arguments: object) -> bool:
    """Return True if a value in the arguments of a job was hidden, so that the job cannot be repeated with them."""
    if isinstance(arguments, Mapping):
        return any(map(is_masked, arguments.values()))
    if isinstance(arguments, list | tuple):
        return any(map(is_masked, arguments))
    return isinstance(arguments, str) and (arguments == MASK or arguments.endswith(f"={MASK}"))
