"""INI files of the managed host: Salt's ``ini`` execution module.

Arguments of all functions: ``separator`` stands between an option and its value, ``encoding`` is the file's (default
UTF-8).
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.hostfiles import ini


def get_ini(ctx: Context, file_name: str, separator: str = "=", encoding: str | None = None) -> dict[str, object]:
    """Return the content of an INI file: a map of option to value, and of section to such a map. Return {} if the file
    does not exist.

    CLI Example:

        salt '*' ini.get_ini /etc/app.ini
    """
    return ini.plain(_read(ctx, file_name, separator, encoding))


def get_section(
    ctx: Context, file_name: str, section: str, separator: str = "=", encoding: str | None = None
) -> dict[str, object]:
    """Return a map of option to value of one section of an INI file, {} if the section does not exist."""
    found = get_ini(ctx, file_name, separator, encoding).get(section)
    return found if isinstance(found, dict) else {}


def get_option(
    ctx: Context, file_name: str, section: str | None, option: str, separator: str = "=", encoding: str | None = None
) -> object:
    """Return the value of an option in a section of an INI file (with ``section=None``: outside of sections). Return
    None if the option does not exist.
    """
    top = get_ini(ctx, file_name, separator, encoding)
    holder = top.get(section) if section else top
    return holder.get(option) if isinstance(holder, dict) else None


def set_option(
    ctx: Context,
    file_name: str,
    sections: Mapping[str, object] | None = None,
    separator: str = "=",
    encoding: str | None = None,
    no_spaces: bool = False,
) -> dict[str, object]:
    """Set options in an INI file. Return a map of the changes. Without a change the file is not written.

    sections
        ``{section: {option: value}, option: value}``
    no_spaces
        True: write no blanks around the separator

    CLI Example:

        salt '*' ini.set_option /etc/app.ini '{server: {port: 80}}'
    """
    top = _read(ctx, file_name, separator, encoding)
    changes = ini.update(top, sections or {}, separator)
    if changes:
        _write(ctx, file_name, top, separator, encoding, no_spaces=no_spaces)
    return {**changes}


def remove_option(
    ctx: Context, file_name: str, section: str | None, option: str, separator: str = "=", encoding: str | None = None
) -> object:
    """Remove an option from an INI file. Return its old value, None if it did not exist."""
    top = _read(ctx, file_name, separator, encoding)
    holder = top.get(section) if section else None
    value = (holder if isinstance(holder, dict) else top).pop(option, None)
    if value is not None:
        _write(ctx, file_name, top, separator, encoding)
    return value


def remove_section(
    ctx: Context, file_name: str, section: str, separator: str = "=", encoding: str | None = None
) -> dict[str, object] | None:
    """Remove a section from an INI file. Return a map of its options, None if it did not exist."""
    top = _read(ctx, file_name, separator, encoding)
    options = top.pop(section, None)
    if not isinstance(options, dict):
        return None
    value = ini.plain(options)
    _write(ctx, file_name, top, separator, encoding)
    return value


def _read(ctx: Context, name: str, separator: str, encoding: str | None) -> ini.Section:
    data = managed_file.read(ctx.host.path(name), name)
    try:
        return ini.parse((data or b"").decode(encoding or "utf-8"), separator)
    except (LookupError, UnicodeDecodeError) as error:
        raise CommandError(f"Unable to open file '{name}'. Exception: {error}") from error


def _write(
    ctx: Context, name: str, top: ini.Section, separator: str, encoding: str | None, *, no_spaces: bool = False
) -> None:
    real_path = ctx.host.path(name)
    if not real_path.parent.is_dir():
        raise CommandError(f"Unable to write file '{name}'. Exception: there is no directory for it")
    text = ini.render(top, separator, no_spaces=no_spaces)
    managed_file.replace(ctx.host, real_path, text.encode(encoding or "utf-8"), Attributes())
