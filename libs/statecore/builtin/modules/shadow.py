"""Passwords of the managed host's users and their expiry: Salt's ``shadow`` execution module.

They are read from /etc/shadow and changed by the host's own programs. Passwords are given as hashes, and are never an
argument of a program.
"""

from __future__ import annotations

from collections.abc import Sequence

from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError, InvocationError
from statecore.model.text_lines import lines_of, text_of
from statecore.system.hostfiles import password_hashes, plain_text

_FILE = "/etc/shadow"

#: Fields of /etc/shadow after name and password: days, "" when not set.
_DAYS = ("lstchg", "min", "max", "warn", "inact", "expire")

#: Field of /etc/shadow -> option of chage.
_OPTIONS = {"lstchg": "-d", "min": "-m", "max": "-M", "warn": "-W", "inact": "-I", "expire": "-E"}

#: Value of a field that is not set, as in getspnam(3).
_UNSET = -1


def available(ctx: Context) -> str | None:
    """Return None if the host has the programs that change passwords; else return the reason as text."""
    missing = [program for program in ("chpasswd", "passwd", "chage") if ctx.host.which(program) is None]
    return f"the host has no {', '.join(missing)}" if missing else None


def default_hash(ctx: Context) -> str:
    """Return "!", the password field in /etc/shadow of a user who never had a password."""
    return "!"


def info(ctx: Context, name: str) -> dict[str, object]:
    """Return a user's entry in /etc/shadow: a map with name, passwd (the hash), lstchg, min, max, warn, inact and
    expire.

    The last six are days; -1 is not set. All values are "" for an unknown user.

    CLI Example:

        salt '*' shadow.info root
    """
    try:
        lines = lines_of(text_of(ctx.host.path(_FILE)))
    except FileNotFoundError:
        lines = []
    except OSError as error:
        raise CommandError(f"{_FILE} cannot be read: {error.strerror}") from error
    row = next((row for row in (line.split(":") for line in lines) if row[0] == str(name)), None)
    if row is None:
        return {"name": "", "passwd": "", **dict.fromkeys(_DAYS, "")}
    fields = [*row[2:8], *[""] * (8 - len(row))]
    days = [int(field) if field.lstrip("-").isdecimal() else _UNSET for field in fields]
    return {"name": row[0], "passwd": row[1] if len(row) > 1 else "", **dict(zip(_DAYS, days, strict=True))}


def list_users(ctx: Context) -> list[str]:
    """Return the names of all users in /etc/shadow, sorted.

    CLI Example:

        salt '*' shadow.list_users
    """
    return sorted(line.split(":")[0] for line in lines_of(plain_text.host_text(ctx.host, "/etc/shadow")) if ":" in line)


def gen_password(
    ctx: Context, password: str, crypt_salt: str | None = None, algorithm: str = "sha512", rounds: int | None = None
) -> str:
    """Return the hash of a password for /etc/shadow. ``crypt_salt`` defaults to a random salt.

    Raise InvocationError for another algorithm than sha256 and sha512.

    CLI Example:

        salt '*' shadow.gen_password 'I_am_password' crypt_salt=saltstring
    """
    try:
        return password_hashes.make(str(password), algorithm=algorithm, salt=crypt_salt, rounds=rounds)
    except ValueError as error:
        raise InvocationError(str(error)) from error


def set_password(ctx: Context, name: str, password: str) -> bool:
    """Set a user's password, given as its hash. Return whether the user has it afterwards. Raise CommandError for a
    hash with a colon or a line end, or with chpasswd's message.
    """
    if ":" in str(password) or "\n" in str(password):
        raise CommandError("a password hash holds no colon and no line end")
    _do(ctx, ["chpasswd", "-e"], stdin=f"{name}:{password}\n")
    return bool(info(ctx, name)["passwd"] == password)


def del_password(ctx: Context, name: str) -> bool:
    """Remove a user's password, so that the user may log in without one. Return whether it is removed."""
    _do(ctx, ["passwd", "-d", str(name)])
    return bool(info(ctx, name)["passwd"] == "")


def lock_password(ctx: Context, name: str) -> bool:
    """Lock a user's password, so that no password matches it. Return whether it is locked. Raise CommandError with
    passwd's message.
    """
    _do(ctx, ["passwd", "-l", str(name)])
    return str(info(ctx, name)["passwd"]).startswith("!")


def unlock_password(ctx: Context, name: str) -> bool:
    """Unlock a user's password, so that it matches again. Return whether it is unlocked."""
    _do(ctx, ["passwd", "-u", str(name)])
    return not str(info(ctx, name)["passwd"]).startswith("!")


def set_date(ctx: Context, name: str, date: object) -> bool:
    """Set the day of a user's last password change (days since 1970, or YYYY-MM-DD). Return whether it is set."""
    return _age(ctx, name, "lstchg", date)


def set_mindays(ctx: Context, name: str, mindays: int) -> bool:
    """Set the number of days before a user's password may be changed again. Return whether it is set. Raise
    CommandError with chage's message.
    """
    return _age(ctx, name, "min", mindays)


def set_maxdays(ctx: Context, name: str, maxdays: int) -> bool:
    """Set the number of days after which a user's password must be changed. Return whether it is set. Raise
    CommandError with chage's message.
    """
    return _age(ctx, name, "max", maxdays)


def set_warndays(ctx: Context, name: str, warndays: int) -> bool:
    """Set the number of days of warning before a user's password must be changed. Return whether it is set."""
    return _age(ctx, name, "warn", warndays)


def set_inactdays(ctx: Context, name: str, inactdays: int) -> bool:
    """Set the number of days during which a user's expired password may still be changed. Return whether it is set."""
    return _age(ctx, name, "inact", inactdays)


def set_expire(ctx: Context, name: str, expire: object) -> bool:
    """Set the day on which a user's account expires (days since 1970, or YYYY-MM-DD); -1 means never. Return whether it
    is set.
    """
    return _age(ctx, name, "expire", expire)


def _age(ctx: Context, name: str, field: str, value: object) -> bool:
    if info(ctx, name)[field] != value:
        _do(ctx, ["chage", _OPTIONS[field], str(value), str(name)])
    # The file holds days, so a date such as 2030-01-01 cannot be compared; chage accepted it.
    return not isinstance(value, int) or bool(info(ctx, name)[field] == value)


def _do(ctx: Context, words: Sequence[str], stdin: str | None = None) -> None:
    result = ctx.host.run(words, env={"LC_ALL": "C"}, stdin=stdin)
    if result.retcode:
        raise CallFailed(result.stderr.strip() or f"{words[0]} failed with return code {result.retcode}")
