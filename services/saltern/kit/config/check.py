"""The command ``saltern check-config``: prints what master and minion would make of their configuration, without
starting them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from saltern.kit.config.master import ConfigError, StateOptions, config_directory, load_master
from saltern.kit.config.minion_options import load_minion
from saltern.kit.config.reading import notes_of
from statecore.model.option_parser import OptionParser
from statecore.model.text_lines import lines_of

_EX_CONFIG = 78

_LOADERS: Mapping[str, Callable[[str | None], StateOptions]] = {"master": load_master, "minion": load_minion}


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``saltern check-config``. Return exit code 0, or 78 if master or minion would not start.

    Errors are printed on stderr, remarks about accepted options on stdout.
    """
    parser = OptionParser(prog="saltern check-config", description=__doc__)
    parser.add_argument("kind", nargs="?", choices=sorted(_LOADERS), help="file to check (default: each that exists)")
    parser.add_argument("-c", "--config-dir", default=None)
    arguments = parser.parse_args(argv)
    directory = config_directory(arguments.config_dir)
    kinds = [arguments.kind] if arguments.kind else [kind for kind in _LOADERS if (directory / kind).is_file()]
    if not kinds:
        sys.stderr.write(f"saltern check-config: {directory} has neither master nor minion; name one with -c\n")
        return _EX_CONFIG
    code = 0
    for kind in kinds:
        try:
            notes = notes_of(_LOADERS[kind](arguments.config_dir))
        except ConfigError as error:
            sys.stderr.write("".join(f"{line}\n" for line in lines_of(str(error))))
            code = _EX_CONFIG
        else:
            sys.stdout.write("".join(f"{line}\n" for line in [*notes, f"{directory / kind}: can be used"]))
    return code
