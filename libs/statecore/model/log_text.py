"""Makes the texts of debug lines in the log: data as YAML, and commands, both with ``**********`` in place of secrets.

Call these functions only after ``log.isEnabledFor(level)``: they format all of their data at once.

Source: docs/minion.md#logs
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from statecore.model import yaml
from statecore.model.redaction import is_hidden, is_secret_name, shown_arguments
from statecore.model.secret_values import SecretValues
from statecore.model.values import MASK

#: Characters of one text in the log; the rest is counted.
_LONGEST = 20_000

#: Levels of nested values that are searched for secrets.
_DEPTH = 20

#: Keys of pillar that are hidden in the log besides those of ``redaction``: names that people give to secrets of other kinds.
_PILLAR_SECRET = re.compile(
    r"(?:.*[_.:-])?(?:pass|pw|psk|pin|creds?|auth|hash|private|priv|keys?|cert(?:ificate)?_?key|dsn)s?", re.IGNORECASE
)

#: Text that is a secret whatever its key is: a private key, an encrypted message, the hash of a password.
_SECRET_TEXT = re.compile(r"-----BEGIN [A-Z ]*(?:PRIVATE KEY|MESSAGE)|^\$[0-9a-z]{1,8}\$|://[^/\s:@]*:[^/\s@]+@")

#: Programs whose arguments may be passwords under no name: only the name of the program is shown.
_SECRETIVE = frozenset(
    {"rabbitmqctl", "htpasswd", "openssl", "smbpasswd", "chpasswd", "mkpasswd", "gpg", "gpg2", "vault"}
)

#: Options of single programs whose value is a password: ``usermod -p``, ``7z -p``, ``unzip -P``, ``rar -hp``.
_PASSWORD_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "useradd": ("-p",),
    "usermod": ("-p",),
    "groupadd": ("-p",),
    "groupmod": ("-p",),
    "mysql": ("-p",),
    "mariadb": ("-p",),
    "mysqldump": ("-p",),
    "7z": ("-p",),
    "7za": ("-p",),
    "unzip": ("-P",),
    "zip": ("-P",),
    "sshpass": ("-p",),
    "curl": ("-u", "--user", "-H", "--header"),
    "wget": ("--header",),
}

#: Statement of SQL that contains a password: the rest of the text after the word is hidden.
_SQL_PASSWORD = re.compile(
    r"\b(identified\s+(?:with\s+\S+\s+)?(?:by|as)|password)\b\s*[=(]?\s*'.*", re.IGNORECASE | re.DOTALL
)

#: Option with a value, or assignment, in a command line: ``--password x``, ``--password=x``, ``PASSWORD=x``, ``"password": "x"``.
_NAMED_WORD = re.compile(
    r"(?<![\w-])(?:(-{1,2}[A-Za-z_][\w.-]*)(\s+|\s*=\s*)|([A-Za-z_][\w.-]*)(\"?\s*[=:]\s*))(\"[^\"]*\"|'[^']*'|[^\s\"';&|]+)"
)

#: Ends of names of variables that contain secrets: ``PGPASSWORD``.
_SECRET_ENDS = ("password", "passwd", "secret", "token", "apikey", "_pwd")


def data_text(data: object, hidden: SecretValues | None = None) -> str:
    """Return data (a rendered SLS, changes) as YAML text for the log. The values of keys that name a secret, such as
    ``password``, are ``**********``.

    ``hidden``: further texts to hide. The arguments of hidden states in the data are added to it, because other SLS
    files may name them in requisites.
    """
    return clipped(_yaml(_of_sls(data, SecretValues() if hidden is None else hidden)))


def pillar_text(pillar: object) -> str:
    """Return pillar as YAML text for the log. More keys and texts than in ``data_text`` count as secret, because users
    store their secrets in pillar.
    """
    return clipped(_yaml(_of_pillar(pillar, _DEPTH)))


def keys_text(data: object) -> str:
    """Return decrypted data as YAML text for the log: only its keys, with ``**********`` in place of each value."""
    return clipped(_yaml(_keys_of(data, _DEPTH)))


def command_text(command: str | Sequence[str]) -> str:
    """Return a command, a text or a list of words, for the log, with ``**********`` in place of passwords.

    Recognised are arguments after names of secrets, options of known programs, and passwords in URLs and SQL.
    """
    if isinstance(command, str):
        return clipped(_of_text(command))
    words = [str(word) for word in command]
    program = words[0].rpartition("/")[2] if words else ""
    if program in _SECRETIVE and len(words) > 1:
        return f"{words[0]} {MASK}"
    if program in ("sh", "bash", "dash", "zsh", "env", "sudo", "chroot", "nsenter"):
        return clipped(" ".join(_of_text(word) if " " in word else word for word in words))
    shown = _of_words(words, _PASSWORD_OPTIONS.get(program, ()))
    return clipped(" ".join(word if MASK in word and " " not in word else shlex.quote(word) for word in shown))


def clipped(text: str) -> str:
    """Return a text with at most 20,000 characters. A longer text is cut, and a last line says how much is left out."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}\n... ({len(text) - _LONGEST} characters more)"


def secrets_of(data: object, depth: int = _DEPTH) -> Iterator[object]:
    """Yield each scalar of nested data that is below a key which names a secret, such as the value of ``password`` in
    ``{db: {password: x}}``.
    """
    if isinstance(data, Mapping):
        for key, value in list(data.items()):
            if is_secret_name(key):
                yield from _scalars(value, depth)
            elif depth:
                yield from secrets_of(value, depth - 1)
    elif isinstance(data, list | tuple) and depth:
        for item in data:
            yield from secrets_of(item, depth - 1)


def _scalars(value: object, depth: int) -> Iterator[object]:
    if isinstance(value, Mapping | list | tuple):
        for item in list(value.values()) if isinstance(value, Mapping) else value:
            if depth:
                yield from _scalars(item, depth - 1)
    else:
        yield value


def _of_sls(data: object, hidden: SecretValues) -> object:
    """Return high data without secrets for the log: without values of keys that name a secret, without standard input,
    and without all arguments of states with ``no_log``, ``hide_output`` or a quiet command. These arguments are added
    to ``hidden``.
    """
    shown = _masked([data])[0]
    if not isinstance(data, Mapping) or not isinstance(shown, Mapping):
        return hidden.hide(shown)
    bodies: dict[object, object] = {}
    for name, body in shown.items():
        states = dict(body) if isinstance(body, Mapping) else {}
        for state, run in states.items():
            if not _hides(run):
                states[state] = _without_stdin(run)
                continue
            states[state] = MASK
            own = data[name][state]
            hidden.add(text for text in _scalars(own, _DEPTH) if isinstance(text, str))
            if str(state).startswith("cmd"):
                hidden.add([name])
        bodies[name] = states or body
    return hidden.hide(bodies)


def _without_stdin(run: object) -> object:
    if not isinstance(run, list):
        return run
    return [{**one, "stdin": MASK} if isinstance(one, Mapping) and "stdin" in one else one for one in run]


def _masked(arguments: list[object]) -> list[object]:
    found = shown_arguments("", arguments)
    return list(found) if isinstance(found, list | tuple) else arguments


def _hides(run: object) -> bool:
    """Return True if the argument list of a state (a list of maps) contains ``no_log``, ``hide_output`` or
    ``output_loglevel: quiet``.
    """
    if not isinstance(run, list):
        return False
    given = {str(key): value for one in run if isinstance(one, Mapping) for key, value in one.items()}
    return is_hidden(given) or bool(given.get("hide_output"))


def _of_pillar(value: object, depth: int) -> object:
    if isinstance(value, Mapping):
        if not depth:
            return MASK
        return {key: MASK if _named_secret(key, item) else _of_pillar(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_of_pillar(item, depth - 1) for item in value] if depth else MASK
    return MASK if isinstance(value, str) and _SECRET_TEXT.search(value) else value


def _keys_of(value: object, depth: int) -> object:
    if isinstance(value, Mapping) and depth:
        return {key: _keys_of(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple) and depth:
        return [_keys_of(item, depth - 1) for item in value]
    return value if value is None or isinstance(value, bool) else MASK


def _named_secret(key: object, value: object) -> bool:
    if isinstance(value, bool) or not value or not isinstance(key, str):
        return False
    return is_secret_name(key) or _PILLAR_SECRET.fullmatch(key) is not None


def _of_words(words: Sequence[str], options: Sequence[str]) -> Iterable[str]:
    hides_next = False
    for at, word in enumerate(words):
        name, equals, _ = word.partition("=")
        if hides_next and at:
            hides_next = False
            yield MASK
        elif equals and _says_secret(name):
            yield f"{name}={MASK}"
        elif at and (word in options or (word.startswith("-") and _says_secret(word))):
            hides_next = True
            yield word
        elif at and (short := next((one for one in options if len(one) == 2 and word.startswith(one)), "")):
            yield f"{short}{MASK}"
        else:
            yield _of_text(word)


def _of_text(text: str) -> str:
    text = _SQL_PASSWORD.sub(lambda found: f"{found[1]} {MASK}", text)
    text = _NAMED_WORD.sub(_hidden_word, text)
    return re.sub(r"(://[^/\s:@]*:)[^/\s@]+@", rf"\1{MASK}@", text)


def _hidden_word(found: re.Match[str]) -> str:
    option, after_option, name, after_name, _ = found.groups()
    return f"{option or name}{after_option or after_name}{MASK}" if _says_secret(option or name) else found[0]


def _says_secret(name: str) -> bool:
    """Return True if the name of an option or variable says that its value is a secret."""
    plain = name.lstrip("-")
    return is_secret_name(plain) or plain.lower().endswith(_SECRET_ENDS)


def _yaml(data: object) -> str:
    try:
        return yaml.dump(data, Dumper=_Dumper, default_flow_style=False, sort_keys=False, allow_unicode=True).rstrip(
            "\n"
        )
    except (yaml.YAMLError, TypeError, RecursionError):
        return repr(data)


class _Dumper(yaml.SafeDumper):
    """YAML dumper for the log: values of other types become their text, and a list that occurs twice is written twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _as_text(dumper: yaml.SafeDumper, data: object) -> yaml.Node:
    if isinstance(data, Mapping):
        return dumper.represent_dict(data)
    if isinstance(data, list | tuple):
        return dumper.represent_list(data)
    return dumper.represent_str(str(data))


_Dumper.add_multi_representer(object, _as_text)
