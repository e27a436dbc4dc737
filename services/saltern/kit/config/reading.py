"""Reads configuration options from files and environment variables into typed, frozen objects.

Each option is a dataclass field; its ``metadata["doc"]`` feeds docs/config.md and error messages. Options that Salt has keep
Salt's name. Values come from these places; a later one replaces an earlier one:

1. the default
2. the file ``<config dir>/master`` (or ``minion``)
3. the files ``<file>.d/*.conf``, in the order of their names
4. the environment: ``SALTERN_<OPTION>`` holds a YAML value; ``SALTERN_<OPTION>_FILE`` names a file that holds it (for secrets)

A map with the key ``driver`` under a name that is no option is a profile of the SDB. A value ``sdb://PROFILE/KEY``, at any
depth, is looked up after all places have been read.

The configuration directory is ``--config-dir``, else ``SALT_CONFIG_DIR``, else ``/etc/salt``. An unknown option is an error whose
message names the nearest option.
"""

from __future__ import annotations

import dataclasses
import os
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from saltern.kit.config.state_options import StateOptions
from statecore.model.lazy import lazy_module
from statecore.model.nearest import close_matches

if TYPE_CHECKING:
    from saltern.kit.config import stock_minion_options
    from statecore.runtime import sdb_options
else:
    # Loads the runtime, which is needed only for options with an sdb:// URI.
    sdb_options = lazy_module("statecore.runtime.sdb_options")
    # A large table that is needed only for errors about unknown options.
    stock_minion_options = lazy_module("saltern.kit.config.stock_minion_options")

#: libyaml's loader, which is faster, if it is installed; both read the same language.
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

DEFAULT_CONFIG_DIR = "/etc/salt"
ENV_PREFIX = "SALTERN_"

#: Suffix of a variable that names a file with the value. An option whose own name ends so (``output_file``) has precedence.
_FILE = "_file"

#: Options that several files of ``<file>.d`` may each say a part of. What the main file says of them counts only without those, as
#: in Salt: one of them is what was saved of the whole.
_JOINED = ("beacons", "schedule")

#: Maps of modules whose name has no dot.
_SECTIONS = frozenset({"vault"})

#: Beginning of a value that is looked up in the SDB.
_SDB = "sdb://"

#: Prefix of Salt's options that are joined into ``out_table``.
_TABLE = "out.table."

Options = TypeVar("Options", bound=StateOptions)


class ConfigError(Exception):
    """Raised when the configuration cannot be used.

    The message names file and line (or the environment variable), the option, the reason and the nearest valid name.
    """


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
    """Check that a file for options of this kind may set option ``name`` to ``value``.

    Raises ConfigError where no such option exists or the value has another type.
    """
    for known, meant in _with_settings(_with_table({name: value})).items():
        names = {item.name for item in dataclasses.fields(kind)}
        _checked(known, meant, typing.get_type_hints(kind), names, partial(str, name))


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


def shown(options: StateOptions) -> dict[str, Any]:
    """Return the map of option name to value that people and job caches may see: without the credentials for Redis."""
    opts = as_opts(options)
    if "redis_url" not in opts:
        return opts
    return {**opts, "redis_url": re.sub(r"//[^/?]*@", "//", opts["redis_url"]).partition("?")[0]}


def read_options(kind: type[Options], file_name: str, config_dir: str | None, env: Mapping[str, str]) -> Options:
    """Return the options of the class ``kind``, read from the configuration files and the environment. Raises ConfigError."""
    hints = typing.get_type_hints(kind)
    names = {item.name for item in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    directory = config_directory(config_dir, env)
    joined: dict[str, Any] = {}
    for path in _config_files(directory, file_name):
        for name, value in _read_file(path).items():
            checked = _checked(name, value, hints, names, partial(_place, path, name))
            if name in _JOINED and path.parent != directory:
                checked = {**joined.get(name, {}), **checked}
                joined[name] = checked
            # Each file may set some of the module settings.
            values[name] = {**values.get(name, {}), **checked} if name == "module_settings" else checked
    for variable, text in env.items():
        name = variable.removeprefix(ENV_PREFIX).lower()
        if variable.startswith(ENV_PREFIX) and name not in names and name.removesuffix(_FILE) in names:
            name, text = name.removesuffix(_FILE), _text_of(variable, text)
        # A variable may be meant for the other kind of process: a lab sources one file for master and minion.
        if variable.startswith(ENV_PREFIX) and name in names:
            values[name] = _checked(name, _from_env(variable, text, hints[name]), hints, names, partial(str, variable))
    if not any(_has_sdb(value) for value in values.values()):
        return kind(**values)
    defaults = {item.name: item.default for item in dataclasses.fields(kind)}
    try:
        found = sdb_options.resolved(values, {**defaults, **values})
    except sdb_options.FAILURES as error:
        raise ConfigError(f"{directory / file_name}: {error}") from error
    return kind(
        **{
            name: _checked(
                name, value, hints, names, partial(str, f"{directory / file_name}: from the SDB"), final=True
            )
            for name, value in found.items()
        }
    )


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


def _config_files(directory: Path, file_name: str) -> Iterator[Path]:
    main, more = directory / file_name, directory / f"{file_name}.d"
    try:
        found = [main] if main.is_file() else []
        found += sorted(path for path in more.iterdir() if path.suffix == ".conf")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ConfigError(f"{error.filename}: cannot be read: {error.strerror}") from error
    yield from found


def _read_file(path: Path) -> dict[str, Any]:
    try:
        data = yaml.load(path.read_bytes(), Loader=_LOADER)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        # YAML raises ValueError for an invalid date.
        raise ConfigError(f"{path}: not valid YAML: {_one_line(error)}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: must hold `option: value` lines, not a {type(data).__name__}")
    return _with_settings(_with_table(data))


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return " ".join(str(error).split())
    problem = getattr(error, "problem", None) or getattr(error, "context", None)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _with_table(values: dict[str, Any]) -> dict[str, Any]:
    """Return the option values with Salt's options ``out.table.NAME`` joined into the one option ``out_table``."""
    dotted = {name: value for name, value in values.items() if str(name).startswith(_TABLE)}
    if not dotted:
        return values
    rest = {name: value for name, value in values.items() if name not in dotted}
    table = rest.get("out_table")
    named = {name.removeprefix(_TABLE): value for name, value in dotted.items()}
    return rest | {"out_table": {**(table if isinstance(table, dict) else {}), **named}}


def _with_settings(values: dict[str, Any]) -> dict[str, Any]:
    """Return the option values with all options whose name contains a dot moved into the map
    ``module_settings``, and with them the profiles of the SDB.

    Such options belong to modules, and only the modules can check them. The option ``return`` becomes
    ``return_``, because Python allows no field of that name.
    """
    dotted = {name: value for name, value in values.items() if "." in str(name).strip(".") or _is_section(name, value)}
    rest = {("return_" if name == "return" else name): value for name, value in values.items() if name not in dotted}
    if not dotted:
        return rest
    settings = rest.get("module_settings")
    return rest | {"module_settings": {**(settings if isinstance(settings, dict) else {}), **dotted}}


def _is_section(name: object, value: object) -> bool:
    """Return whether an option is a map of a module: a profile of the SDB, or one of ``_SECTIONS``."""
    return isinstance(value, Mapping) and (name in _SECTIONS or isinstance(value.get("driver"), str))


def _place(path: Path, name: str) -> str:
    """Return the position in the configuration that sets an option, as text such as ``file, line 3``, for an error message."""
    root = yaml.compose(path.read_bytes(), Loader=_LOADER)
    lines = [key.start_mark.line + 1 for key, _ in root.value if key.value == str(name)] if root else []
    return f"{path}, line {lines[-1]}" if lines else str(path)


def _from_env(variable: str, text: str, hint: Any) -> Any:
    if hint is str:
        return text
    if str in typing.get_args(hint) and type(None) in typing.get_args(hint):
        return text or None
    try:
        return yaml.load(text, Loader=_LOADER)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{variable}: not valid YAML: {_one_line(error)}") from error


def _checked(
    name: str, value: Any, hints: Mapping[str, Any], names: set[str], where: Callable[[], str], *, final: bool = False
) -> Any:
    """Return the value of an option. Raise ConfigError for an unknown option, and for a value of another type; until
    ``final``, a URI of the SDB has every type.
    """
    if name not in names:
        # Only for minions: `saltern import` explains a stock master's options.
        if "host_root" in names and (advice := stock_minion_options.advice_for(str(name))):
            raise ConfigError(f"{where()}: option '{name}' is stock Salt's: {advice}")
        near = close_matches(str(name), names, n=1)
        raise ConfigError(f"{where()}: unknown option '{name}'" + (f"; the nearest is '{near[0]}'" if near else ""))
    hint = hints[name]
    if not _fits(value, hint) and (final or not _has_sdb(value)):
        raise ConfigError(f"{where()}: option '{name}' must be {_named(hint)}, not {value!r}")
    return value


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if hint is Any:
        return True
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, arm) for arm in typing.get_args(hint))
    if origin is list:
        (item,) = typing.get_args(hint)
        return isinstance(value, list) and all(_fits(entry, item) for entry in value)
    if origin is dict:
        key, item = typing.get_args(hint)
        return isinstance(value, dict) and all(_fits(k, key) and _fits(v, item) for k, v in value.items())
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _named(hint: Any) -> str:
    plain = {int: "a whole number", str: "text", bool: "true or false", type(None): "empty", Any: "anything"}
    if hint in plain:
        return plain[hint]
    arms = [_named(arm) for arm in typing.get_args(hint)]
    if typing.get_origin(hint) is list:
        return f"a list (of {arms[0]})"
    if typing.get_origin(hint) is dict:
        return f"a map ({arms[0]}: {arms[1]})"
    return " or ".join(arms)
