"""Passwords of the managed host's users and how they age (Salt's ``shadow`` module): read from its /etc/shadow, changed by
its own programs. Passwords are given as hashes, and never stand in the arguments of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.hostfiles import password_hashes, plain_text

_FILE = "/etc/shadow"

#: Fields of the file behind the name and the password: days, "" when not set.
_DAYS = ("lstchg", "min", "max", "warn", "inact", "expire")

#: Field -> option of chage.
_OPTIONS = {"lstchg": "-d", "min": "-m", "max": "-M", "warn": "-W", "inact": "-I", "expire": "-E"}

#: What a field holds that is not set, as the system's own reader tells it.
_UNSET = -1


def available(ctx: Context) -> str | None:
    """None where the host can change its passwords."""
    missing = [program for program in ("chpasswd", "passwd", "chage") if ctx.host.which(program) is None]
    return f"the host has no {', '.join(missing)}" if missing else None


def default_hash(ctx: Context) -> str:
    """What stands for the password of a user that never had one."""
    return "!"


def info(ctx: Context, name: str) -> dict[str, Any]:
    """name, passwd (the hash), lstchg, min, max, warn, inact and expire (days, -1: not set); "" for all of an unknown user.

    CLI Example:

        salt '*' shadow.info root
    """
    try:
        lines = ctx.host.path(_FILE).read_text("utf-8", "replace").splitlines()
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
    """Names of those that the shadow file tells of, sorted.

    CLI Example:

        salt '*' shadow.list_users
    """
    return sorted(
        line.split(":")[0] for line in plain_text.host_text(ctx.host, "/etc/shadow").splitlines() if ":" in line
    )


def gen_password(
    ctx: Context, password: str, crypt_salt: str | None = None, algorithm: str = "sha512", rounds: int | None = None
) -> str:
    """The hash of a password, with a salt of its own where none is named. Raises InvocationError for an algorithm other than
    sha256 and sha512.

    CLI Example:

        salt '*' shadow.gen_password 'I_am_password' crypt_salt=saltstring
    """
    try:
        return password_hashes.make(str(password), algorithm=algorithm, salt=crypt_salt, rounds=rounds)
    except ValueError as error:
        raise InvocationError(str(error)) from error


def set_password(ctx: Context, name: str, password: str) -> bool:
    """Sets a password, given as its hash."""
    if ":" in str(password) or "\n" in str(password):
        raise CommandError("a password hash holds no colon and no line end")
    _do(ctx, ["chpasswd", "-e"], stdin=f"{name}:{password}\n")
    return bool(info(ctx, name)["passwd"] == password)


def del_password(ctx: Context, name: str) -> bool:
    """Empties a password: the user may log in without one."""
    _do(ctx, ["passwd", "-d", str(name)])
    return bool(info(ctx, name)["passwd"] == "")


def lock_password(ctx: Context, name: str) -> bool:
    """Makes a password one that nothing matches."""
    _do(ctx, ["passwd", "-l", str(name)])
    return str(info(ctx, name)["passwd"]).startswith("!")


def unlock_password(ctx: Context, name: str) -> bool:
    """Ends a lock."""
    _do(ctx, ["passwd", "-u", str(name)])
    return not str(info(ctx, name)["passwd"]).startswith("!")


def set_date(ctx: Context, name: str, date: Any) -> bool:
    """Sets the day of the last change (days since 1970, or YYYY-MM-DD)."""
    return _age(ctx, name, "lstchg", date)


def set_mindays(ctx: Context, name: str, mindays: int) -> bool:
    """Sets the days before a password may be changed again."""
    return _age(ctx, name, "min", mindays)


def set_maxdays(ctx: Context, name: str, maxdays: int) -> bool:
    """Sets the days after which a password must be changed."""
    return _age(ctx, name, "max", maxdays)


def set_warndays(ctx: Context, name: str, warndays: int) -> bool:
    """Sets the days of warning before a password must be changed."""
    return _age(ctx, name, "warn", warndays)


def set_inactdays(ctx: Context, name: str, inactdays: int) -> bool:
    """Sets the days that an expired password may still be changed."""
    return _age(ctx, name, "inact", inactdays)


def set_expire(ctx: Context, name: str, expire: Any) -> bool:
    """Sets the day on which the account expires (days since 1970, or YYYY-MM-DD); -1: never."""
    return _age(ctx, name, "expire", expire)


def _age(ctx: Context, name: str, field: str, value: Any) -> bool:
    if info(ctx, name)[field] != value:
        _do(ctx, ["chage", _OPTIONS[field], str(value), str(name)])
    # A date in words is not what the file holds; the program took it.
    return not isinstance(value, int) or bool(info(ctx, name)[field] == value)


def _do(ctx: Context, words: Sequence[str], stdin: str | None = None) -> None:
    result = ctx.host.run(words, env={"LC_ALL": "C"}, stdin=stdin)
    if result.retcode:
        raise CommandError(result.stderr.strip() or f"{words[0]} failed with return code {result.retcode}")
