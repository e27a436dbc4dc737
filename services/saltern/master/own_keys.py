"""The keys of all roles at the first start of salt-master: a stock master's key pair is kept, all other keys are made."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from saltern.kit.command.command_line import CommandError
from saltern.kit.config.master import ConfigError, MasterOptions, config_directory
from saltern.kit.keys.keygen import give_keys, make_keys
from saltern.kit.links.sockets import NAMES
from saltern.kit.process.run_as import passwd_entry
from saltern.moving import keys as stock_keys

_LOG = logging.getLogger("saltern.master")

#: Directory of a stock master's keys, if its configuration names no ``pki_dir``.
_STOCK_PKI = "/etc/salt/pki/master"


def complete(options: MasterOptions, config_dir: str | None) -> None:
    """Make the missing keys of all roles, and give root's keys to the user of the option ``user``. Do nothing else if
    all keys exist.

    The work is done in a child process: the supervisor, from which the roles are forked, never has a key in its
    memory. Raises ConfigError.
    """
    if options.key_dir:
        raise ConfigError(
            "key_dir: it is the directory of one role; salt-master runs all roles, whose keys are below <config dir>/keys"
        )
    directory = config_directory(config_dir) / "keys"
    owner = _owner(options)
    if (
        all((directory / name / "curve.secret").exists() for name in NAMES)
        and (directory / "mworker/master.pem").exists()
    ):
        if owner is not None:
            _in_child(lambda: give_keys(directory, owner), directory)
        return
    pki = Path(str(options.module_settings.get("pki_dir") or Path(options.root_dir) / _STOCK_PKI.lstrip("/")))
    _in_child(lambda: _make(options, directory, pki, owner), directory)


def _owner(options: MasterOptions) -> tuple[int, int] | None:
    """Return (uid, gid) of the user whose keys root makes: that of the option ``user``. None if this process keeps them."""
    if options.user in ("", "root") or os.geteuid() != 0:
        return None
    entry = passwd_entry(options.user)
    return entry.pw_uid, entry.pw_gid


def _make(options: MasterOptions, directory: Path, pki: Path, owner: tuple[int, int] | None) -> None:
    if (pki / "master.pem").exists() and not (directory / "mworker/master.pem").exists():
        names = stock_keys.sign_names(options.master_sign_key_name, options.master_pubkey_signature)
        made = stock_keys.lay_down(directory, stock_keys.taken(pki, names), owner)
        _LOG.warning("the master's key is that of %s; `salt-key --import %s` brings the keys of its minions", pki, pki)
    else:
        made = make_keys(directory, owner=owner)
    _LOG.info("made %d files of keys in %s", len(made), directory)


def _in_child(make: Callable[[], None], directory: Path) -> None:
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            make()
            code = 0
        except (CommandError, ConfigError) as error:
            _LOG.error("%s", error)
        except OSError as error:
            _LOG.error(
                "%s: %s; `saltern keygen --out %s --owner UID:GID` makes the keys as root",
                error.filename,
                error.strerror,
                directory,
            )
        finally:
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise ConfigError(f"the keys in {directory} could not be made; the log says why")
