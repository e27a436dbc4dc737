"""Reads configuration options from files and environment variables into typed, frozen objects.

Each option is a dataclass field; its ``metadata["doc"]`` feeds docs/config.md and error messages. Options that Salt has keep
Salt's name. Values come from these places; a later one replaces an earlier one:

1. the default
2. the file ``<config dir>/master`` (or ``minion``)
3. the files of its options ``default_include`` (``<file>.d/*.conf``) and ``include``
4. the environment: ``SALTERN_<OPTION>`` holds a YAML value; ``SALTERN_<OPTION>_FILE`` names a file that holds it (for secrets)

A stock configuration is read as it is. A value of another type is read as Salt reads it ('4506' is 4506). An option of Salt that
has no effect here is accepted (``stock_options``). Any other name is the user's own key, which modules and templates find in
``opts`` and by ``config.get``. What was read so is said by the notes of the options, and by ``saltern check-config``.

A value ``sdb://PROFILE/KEY``, at any depth, is looked up after all places have been read. A path option is below ``root_dir``.

The configuration directory is ``--config-dir``, else ``SALT_CONFIG_DIR``, else ``/etc/salt``.
"""

from __future__ import annotations

import dataclasses
import os
import re
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from saltern.kit.config import config_files, value_types
from saltern.kit.config.config_files import ConfigError, PortTaken
from saltern.kit.config.state_options import StateOptions
from statecore.model import yaml
from statecore.model.lazy import lazy_module
from statecore.model.nearest import one_letter_off

if TYPE_CHECKING:
    from saltern.kit.config import stock_options
    from statecore.runtime import sdb_options
else:
    # Loads the runtime, which is needed only for options with an sdb:// URI.
    sdb_options = lazy_module("statecore.runtime.sdb_options")
    # A large table that is needed only for options that are no fields.
    stock_options = lazy_module("saltern.kit.config.stock_options")

__all__ = [
    "ENV_PREFIX",
    "ConfigError",
    "Notes",
    "PortTaken",
    "as_opts",
    "check_option",
    "conf_file",
    "config_directory",
    "gpg_keys",
    "notes_of",
    "public_options",
    "read_options",
    "shown",
]

DEFAULT_CONFIG_DIR = "/etc/salt"
ENV_PREFIX = "SALTERN_"

#: Suffix of a variable that names a file with the value. An option whose own name ends so (``output_file``) has precedence.
_FILE = "_file"

#: Options whose value may be ``file://PATH``: the file is read when it is needed, because it may be replaced while roles run.
_IN_FILES = frozenset({"redis_url"})

#: Options that are passwords: of users' sign-in, of Redis.
_PASSWORDS = frozenset({"sharedsecret", "auth.ldap.bindpw", "redis_password", "redis_sentinel_password"})

#: Options that contain passwords, or URLs with passwords.
_SECRET = frozenset({"redis_url", "proxy_password", *_PASSWORDS})

#: Options that several files of ``<file>.d`` may each say a part of. What the main file says of them counts only without those, as
#: in Salt: one of them is what was saved of the whole.
_JOINED = ("beacons", "schedule")

#: Beginning of a value that is looked up in the SDB.
_SDB = "sdb://"

#: Options that are paths, which ``root_dir`` is put in front of.
_BELOW_ROOT = (
    *("pki_dir", "cachedir", "extension_modules", "log_file", "autosign_file", "autoreject_file", "autosign_dir"),
    *("autosign_grains_dir", "redis_dir"),
)

Options = TypeVar("Options", bound=StateOptions)


@dataclass
class Notes:
    """Remarks about a configuration that was accepted, for example that an option has no effect or looks misspelt."""

    #: Reason -> options of Salt that have no effect for this reason.
    without_effect: dict[str, list[str]] = field(default_factory=dict)
    #: Sentences about single options, each with its file and line.
    single: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """Return the remarks as texts: one that names all options without effect, and one for each other remark."""
        if not self.without_effect:
            return list(self.single)
        groups = [f"{', '.join(sorted(names))} ({why})" for why, names in self.without_effect.items()]
        return [f"options of Salt that have no effect here: {'; '.join(groups)}", *self.single]


def notes_of(options: StateOptions) -> list[str]:
    """Return the remarks (a list of sentences) that were made while these options were read; [] if there are none."""
    notes: list[str] = vars(options).get("_notes", [])
    return notes


def config_directory(config_dir: str | None, env: Mapping[str, str] | None = None) -> Path:
    """Return the directory from which options are read: ``config_dir``, else the environment's SALT_CONFIG_DIR, else /etc/salt."""
    return Path(config_dir or (os.environ if env is None else env).get("SALT_CONFIG_DIR") or DEFAULT_CONFIG_DIR)


def gpg_keys(options: StateOptions, config_dir: str | None, env: Mapping[str, str] | None) -> str:
    """Return the directory with the keys of the renderer ``gpg``.

    It is the option ``gpg_keydir``, else ``gpgkeys`` in the configuration directory.
    """
    return options.gpg_keydir or str(config_directory(config_dir, env) / "gpgkeys")


def conf_file(options: StateOptions, file_name: str, config_dir: str | None, env: Mapping[str, str] | None) -> str:
    """Return the path of the main configuration file (``master`` or ``minion``); the file may be missing."""
    return options.conf_file or str(config_directory(config_dir, env) / file_name)


def check_option(kind: type[StateOptions], name: str, value: Any) -> None:
    """Check that the configuration file of a master (MasterOptions) or minion (MinionOptions) may set option ``name``
    to ``value``.

    Raises ConfigError if the value has a type that cannot be read as the option's type, or if the option does not
    allow it.
    """
    reader = _Reader(kind)
    reader.add({name: value}, lambda known: known)
    reader.raise_errors()


def as_opts(options: StateOptions, **more: Any) -> dict[str, Any]:
    """Return the map of option name to value that statecore and templates see.

    It also holds ``config_dir`` and ``__role``, which users' modules read.
    """
    fields = {item.name: getattr(options, item.name) for item in dataclasses.fields(options)}
    place = {
        "config_dir": options.conf_file.rpartition("/")[0],
        "__role": "minion" if "host_root" in fields else "master",
    }
    return {**options.module_settings, **fields, **place, **more}


def without(opts: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return a copy of the map of options ``opts`` without the options ``names``, also without those among the users'
    own keys (``module_settings``).
    """
    left = {name: value for name, value in opts.items() if name not in names}
    if isinstance(own := left.get("module_settings"), Mapping):
        left["module_settings"] = {name: value for name, value in own.items() if name not in names}
    return left


def public_options(options: StateOptions) -> dict[str, Any]:
    """Return the map of option name to value without the options that hold passwords, or URLs with passwords."""
    return without(as_opts(options), _SECRET)


def redis_place(url: str) -> str:
    """Return a URL of Redis without user, password and query: where Redis is."""
    return re.sub(r"//[^/?]*@", "//", url).partition("?")[0]


def shown(options: StateOptions) -> dict[str, Any]:
    """Return the map of option name to value that people and job caches may see: without the credentials for Redis and
    for users' sign-in.
    """
    opts = without(as_opts(options), _PASSWORDS)
    if "redis_url" not in opts:
        return opts
    return {**opts, "redis_url": redis_place(opts["redis_url"])}


class _Reader:
    """Reads the option values of one configuration: collects the valid values, the errors and the remarks (``notes``)."""

    def __init__(self, kind: type[StateOptions]) -> None:
        self._hints = typing.get_type_hints(kind)
        self.names = {item.name for item in dataclasses.fields(kind)}
        self._minion = "host_root" in self.names
        self.values: dict[str, Any] = {}
        self.errors: list[str] = []
        self.notes = Notes()

    def add(self, given: Mapping[str, Any], where: Callable[[str], str], *, final: bool = False) -> dict[str, Any]:
        """Check the values of one configuration file and return {option name: value}; users' own keys are in ``module_settings``.

        Errors and remarks are collected. ``where`` returns the position of an option, for messages. ``final``: no ``sdb://``
        value is left to look up.
        """
        found: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for name, value in self._renamed(config_files.with_table(given)).items():
            if name in self.names:
                self._typed(found, name, value, partial(where, name), final=final)
            else:
                own[name] = value
                self._remark(name, value, partial(where, name))
        if own:
            settings = found.get("module_settings")
            found["module_settings"] = {**(settings if isinstance(settings, dict) else {}), **own}
        return found

    def hint(self, name: str) -> Any:
        """Return the type hint of an option."""
        return self._hints[name]

    def raise_errors(self) -> None:
        """Raise ConfigError with all errors, if there are any."""
        if self.errors:
            raise ConfigError("\n".join(self.errors))

    def _renamed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the option values with two of Salt's names replaced by Saltern's: ``return`` becomes ``return_``, and
        ``keep_jobs`` (hours) becomes ``keep_jobs_seconds``.
        """
        values = {("return_" if name == "return" else name): value for name, value in given.items()}
        if "keep_jobs" in values and "keep_jobs_seconds" in self.names:
            hours = values.pop("keep_jobs")
            try:
                values.setdefault("keep_jobs_seconds", int(float(hours) * 3600))
            except (TypeError, ValueError):
                self.errors.append(f"option 'keep_jobs' must be a number of hours, not {hours!r}")
        return values

    def _typed(self, found: dict[str, Any], name: str, value: Any, where: Callable[[], str], *, final: bool) -> None:
        hint = self._hints[name]
        if value_types.fits(value, hint) or (not final and _has_sdb(value)):
            found[name] = value
            return
        if value is None and not final:
            # As in Salt, `id:` without a value is not set.
            return
        try:
            found[name] = value_types.coerced(value, hint)
        except ValueError:
            self.errors.append(f"{where()}: option '{name}' must be {value_types.named(hint)}, not {value!r}")
        else:
            self.notes.single.append(f"{where()}: option '{name}' is read as {found[name]!r}, not {value!r}")

    def _remark(self, name: str, value: Any, where: Callable[[], str]) -> None:
        """Add a remark or an error about a configuration key that is no option of Saltern.

        Remarks are made about options of stock Salt, and about a user's own key that differs from an option by one
        letter.
        """
        stock = stock_options.treatment(str(name), value, minion=self._minion)
        if stock is None and "." not in str(name):
            near = next((known for known in sorted(self.names) if one_letter_off(str(name), known)), None)
            if near is not None:
                self.notes.single.append(
                    f"{where()}: '{name}' is no option, and so a key of your own; the option is called '{near}'"
                )
        elif stock is None:
            return
        elif stock.refused:
            self.errors.append(f"{where()}: option '{name}' is not supported: {stock.why}")
        else:
            self.notes.without_effect.setdefault(stock.why, []).append(str(name))


def read_options(
    kind: type[Options],
    file_name: str,
    config_dir: str | None,
    env: Mapping[str, str],
    defaults: Mapping[str, Any] | None = None,
) -> Options:
    """Return the options of the class ``kind``, read from the configuration files and the environment.

    ``defaults`` maps options to default values that replace those of the class. Raises ConfigError with all errors.
    """
    reader = _Reader(kind)
    values: dict[str, Any] = {}
    directory = config_directory(config_dir, env)
    joined: dict[str, Any] = {}
    for path, given in config_files.config_files(directory, file_name):
        for name, value in reader.add(given, partial(config_files.place, path)).items():
            checked = value
            if name in _JOINED and path.parent != directory:
                checked = joined[name] = {**joined.get(name, {}), **checked}
            # Each file may set some of the users' own keys.
            values[name] = {**values.get(name, {}), **checked} if name == "module_settings" else checked
    values |= _from_environment(reader, env)
    if any(_has_sdb(value) for value in values.values()):
        values = _looked_up(reader, kind, values, str(directory / file_name))
    reader.raise_errors()
    return with_notes(kind(**_below_root(kind, {**(defaults or {}), **values})), reader.notes.sentences())


def with_notes(options: Options, notes: Iterable[str]) -> Options:
    """Attach remarks (sentences about the configuration) to options, where ``notes_of`` finds them, and return the options."""
    listed = list(notes)
    if listed:
        object.__setattr__(options, "_notes", listed)
    return options


def _from_environment(reader: _Reader, env: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable, text in env.items():
        name = variable.removeprefix(ENV_PREFIX).lower()
        if not variable.startswith(ENV_PREFIX):
            continue
        try:
            if name not in reader.names and name.removesuffix(_FILE) in reader.names:
                name, place = name.removesuffix(_FILE), text
                # A file that is read later may be missing: a role with its own login has no need of it.
                text = f"file://{Path(place).absolute()}" if name in _IN_FILES else _text_of(variable, place)
            # A variable may be meant for the other kind of process: a lab sources one file for master and minion.
            if name in reader.names:
                value = _from_variable(variable, text, reader.hint(name))
                found |= reader.add({name: value}, dict.fromkeys((name,), variable).__getitem__)
        except ConfigError as error:
            reader.errors.append(str(error))
    return found


def _looked_up(reader: _Reader, kind: type[StateOptions], values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the option values with every ``sdb://`` URI replaced by the value that it names. Raise ConfigError if a
    URI cannot be looked up.
    """
    reader.raise_errors()
    defaults = {item.name: item.default for item in dataclasses.fields(kind)}
    try:
        found = sdb_options.resolved(values, {**defaults, **values})
    except sdb_options.FAILURES as error:
        raise ConfigError(f"{source}: {error}") from error
    own = found.pop("module_settings", {})
    checked = reader.add(found, lambda known: f"{source}: from the SDB", final=True)
    return {**checked, "module_settings": own}


def _below_root(kind: type[StateOptions], values: dict[str, Any]) -> dict[str, Any]:
    """Return the option values with ``root_dir`` in front of each path, as in Salt, unless the path is below
    ``root_dir`` already.
    """
    root = str(values.get("root_dir") or "/").rstrip("/")
    if not root:
        return values
    defaults = {item.name: item.default for item in dataclasses.fields(kind)}
    found = dict(values)
    for name in _BELOW_ROOT:
        path = values.get(name, defaults.get(name))
        if isinstance(path, str) and path.startswith("/") and path != root and not path.startswith(f"{root}/"):
            found[name] = root + path
    return found


def _has_sdb(value: object) -> bool:
    if isinstance(value, str):
        return value.startswith(_SDB)
    if isinstance(value, Mapping):
        return any(_has_sdb(each) for each in value.values())
    return isinstance(value, list) and any(_has_sdb(each) for each in value)


def _text_of(variable: str, path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError as error:
        raise ConfigError(
            f"{variable}: {path}: {error.strerror}; mount the secret there, or unset {variable}"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{variable}: {path}: not UTF-8") from error


def _from_variable(variable: str, text: str, hint: Any) -> Any:
    if hint is str:
        return text
    if str in typing.get_args(hint) and type(None) in typing.get_args(hint):
        return text or None
    try:
        return yaml.load(text)
    except yaml.YamlFault as error:
        raise ConfigError(f"{variable}: not valid YAML: {error.placed}") from error
