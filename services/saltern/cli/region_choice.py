"""The option ``--region``: which regions' masters a command asks, and the configuration of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from saltern.kit.command.command_line import CommandError, CommandParser, Exit
from saltern.kit.config.master import ClientOptions, ConfigError, config_directory, load_client, load_master
from statecore.model.nearest import close_matches

#: Value of ``--region`` for all configured regions.
ALL = "all"


@dataclass(frozen=True, slots=True)
class Region:
    """A region: its name, and the directory with the file ``master`` and the operator's keys of its master."""

    name: str
    directory: str | None
    #: Whether the directory is the command's own: the environment's options then count, too.
    own: bool = False


def add_region_flag(parser: CommandParser) -> None:
    """Add the option ``--region`` to a command's parser."""
    parser.add_argument(
        "--region",
        action="append",
        default=[],
        metavar="NAME",
        help="ask the masters of these regions (option regions of the configuration); a name, several with commas, or all",
    )


def names_of_regions(given: Iterable[str], known: Sequence[str]) -> list[str]:
    """Return the names of the regions that the words of ``--region`` mean, each once, in the order of the words.

    Raises CommandError (exit code 64) for an unknown name.
    """
    words = [name for word in given for part in word.split(",") if (name := part.strip())]
    names: list[str] = []
    for word in words:
        if word != ALL and word not in known:
            near = close_matches(word, known)
            hint = f"; did you mean {near[0]}?" if near else f"; regions are: {', '.join(known)}" if known else ""
            raise CommandError(f"region '{word}' is not in the option regions{hint}", Exit.USAGE)
        names += known if word == ALL else [word]
    return list(dict.fromkeys(names))


def chosen_regions(given: Sequence[str], options: ClientOptions, config_dir: str | None) -> list[Region]:
    """Return the regions that a command asks; empty if it asks its own master only.

    ``given``: the words of ``--region``; without them the option ``default_regions`` counts. A relative directory of the
    option ``regions`` is below ``config_dir``, the command's own configuration directory. Raises CommandError.
    """
    names = names_of_regions(given or options.default_regions, list(options.regions))
    if given and not names:
        raise CommandError("--region needs the name of a region", Exit.USAGE)
    own = config_directory(config_dir)
    found = []
    for name in names:
        directory = own / options.regions[name]
        is_own = directory.resolve() == own.resolve()
        found.append(Region(name, config_dir if is_own else str(directory), is_own))
    return found


def load_region(region: Region) -> ClientOptions:
    """Return the options for a region's master. Raises ConfigError if there is no configuration, or a wrong one.

    The environment sets options of the command's own master only, so it does not count for other regions.
    """
    if region.own:
        return load_client(region.directory)
    # Without this check the defaults would lead to a master on this machine.
    file = Path(str(region.directory)) / "master"
    if not file.is_file():
        raise ConfigError(f"region {region.name}: there is no file {file}")
    return load_master(region.directory, env={})
