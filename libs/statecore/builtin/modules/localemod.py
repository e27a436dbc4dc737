"""Locales of the managed host: Salt's ``locale`` execution module.

Where systemd runs, ``localectl`` sets the system's locale. Elsewhere, and on a mounted host, the distribution's
configuration file is written.
"""

from __future__ import annotations

import re

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

VIRTUAL = "locale"

_CONF = "/etc/locale.conf"

#: os_family -> (older file, variable) of the system's locale. Debian still uses its file; others only if it exists.
_FILES = {
    "Debian": ("/etc/default/locale", "LANG"),
    "RedHat": ("/etc/sysconfig/i18n", "LANG"),
    "Suse": ("/etc/sysconfig/language", "RC_LANG"),
}
_GENERATED = "/etc/locale.gen"
_SUPPORTED = "/usr/share/i18n/SUPPORTED"
_SOURCES = "/usr/share/i18n/locales"

#: ``language_TERRITORY.codeset@modifier charmap``
_PARTS = re.compile(
    r"^(?P<language>[^_.@ ]*)(?:_(?P<territory>[^.@ ]*))?(?:\.(?P<codeset>[^@ ]*))?(?:@(?P<modifier>[^ ]*))?"
)


def list_avail(ctx: Context) -> list[str]:
    """Return the names of the locales that programs of the host can use."""
    return lines_of(ctx.host.run(["locale", "-a"]).stdout)


def get_locale(ctx: Context) -> str:
    """Return the locale of the host, such as en_US.UTF-8; "" if none is set.

    CLI Example:

        salt '*' locale.get_locale
    """
    if _localectl(ctx):
        found = re.search(r"\bLANG=(\S+)", ctx.host.run(["localectl", "status"]).stdout)
        return found[1] if found else ""
    name, key = _file(ctx)
    found = re.search(rf"^{key}=[\"']?([^\"'\n]*)", _text(ctx, name), re.MULTILINE)
    return found[1].strip() if found else ""


def set_locale(ctx: Context, locale: str) -> bool:
    """Set the locale of the host. Return whether this succeeded."""
    if _localectl(ctx) and ctx.host.run(["localectl", "set-locale", f"LANG={locale}"]).retcode == 0:
        return True
    name, key = _file(ctx)
    line = f"{key}={locale}" if name == _CONF else f'{key}="{locale}"'
    text, count = re.subn(rf"^{key}=.*$", line, _text(ctx, name), flags=re.MULTILINE)
    if not count:
        text += ("" if not text or text.endswith("\n") else "\n") + f"{line}\n"
    real_path = ctx.host.path(name)
    managed_file.make_directories(ctx.host, real_path.parent, Attributes(), ctx.host.root)
    managed_file.replace(ctx.host, real_path, text.encode(), Attributes())
    return True


def avail(ctx: Context, locale: str) -> bool:
    """Return whether programs of the host can use a locale. Spellings of the codeset such as utf8 and UTF-8 are
    equal.
    """
    return _normal(locale) in {_normal(each) for each in list_avail(ctx)}


def gen_locale(ctx: Context, locale: str, **kwargs: object) -> object:
    """Generate a locale on the host. Return whether this succeeded; False if the host does not know the locale.

    verbose
        True: return a map with retcode, stdout, stderr and pid of the program

    CLI Example:

        salt '*' locale.gen_locale 'de_DE.UTF-8 UTF-8'
    """
    name, _, charmap = locale.partition(" ")
    parts = _PARTS.match(name)
    source = f"{parts['language']}_{parts['territory']}" if parts else name
    codeset = (parts["codeset"] if parts else "") or ""
    full = f"{name} {charmap or codeset}".strip()
    supported = lines_of(_text(ctx, _SUPPORTED))
    if full not in supported if supported else not ctx.host.path(f"{_SOURCES}/{source}").is_file():
        return False
    if ctx.host.path(_GENERATED).is_file():
        _enable(ctx, full)
    if ctx.host.which("locale-gen"):
        words = ["locale-gen", full]
    elif ctx.host.which("localedef"):
        words = ["localedef", "--force", "-i", source, "-f", codeset, f"{source}.{codeset}"]
        words.append("--verbose" if kwargs.get("verbose") else "--quiet")
    else:
        raise CommandError('Command "locale-gen" or "localedef" was not found on this system.')
    result = ctx.host.run(words)
    if kwargs.get("verbose"):
        return {"retcode": result.retcode, "stdout": result.stdout, "stderr": result.stderr, "pid": result.pid}
    return result.retcode == 0


def _localectl(ctx: Context) -> bool:
    booted = not ctx.host.mounted and ctx.host.path("/run/systemd/system").is_dir()
    return booted and ctx.host.which("localectl") is not None


def _file(ctx: Context) -> tuple[str, str]:
    name, key = _FILES.get(str(ctx.grains.get("os_family")), (_CONF, "LANG"))
    if name != _FILES["Debian"][0] and not ctx.host.path(name).is_file():
        return _CONF, "LANG"
    return name, key


def _enable(ctx: Context, full: str) -> None:
    """Add a locale to /etc/locale.gen, the host's list of locales to generate."""
    text = _text(ctx, _GENERATED)
    if full in (line.strip() for line in lines_of(text)):
        return
    text, count = re.subn(rf"^[ \t]*#[ \t]*{re.escape(full)}[ \t]*$", full, text, flags=re.MULTILINE)
    if not count:
        text += ("" if not text or text.endswith("\n") else "\n") + f"{full}\n"
    managed_file.replace(ctx.host, ctx.host.path(_GENERATED), text.encode(), Attributes())


def _normal(locale: str) -> str:
    parts = _PARTS.match(locale.strip())
    if parts is None:
        return locale
    codeset = (parts["codeset"] or "").lower().replace("-", "")
    return f"{parts['language']}_{(parts['territory'] or '').upper()}.{codeset}@{parts['modifier'] or ''}"


def _text(ctx: Context, name: str) -> str:
    return (managed_file.read(ctx.host.path(name), name) or b"").decode("utf-8", "replace")
