"""``salt-call``: runs a function on this host, with the master's files and pillar or (``--local``) without a master."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from saltern.kit.command.arguments import documentation, parse_arguments, value_of
from saltern.kit.command.command_line import (
    PROFILING,
    CommandError,
    CommandParser,
    Exit,
    RefusedOption,
    add_doc_flag,
    add_executor_flags,
    add_no_parse_flag,
    executors,
    run_command,
)
from saltern.kit.command.output.flags import Printer, add_output_flags
from saltern.kit.config.minion_options import MinionOptions, extension_directory, load_minion
from saltern.kit.config.reading import as_opts
from saltern.kit.process.logs import configure
from saltwire.jid import new_jid
from statecore.model.errors import StatecoreError
from statecore.model.ports import Jobs
from statecore.model.redaction import shown_arguments
from statecore.runtime.calls import Returned
from statecore.runtime.return_delivery import named
from statecore.runtime.runtime import Runtime, local_runtime

#: Module for the master: sockets and cryptography. Loaded only without --local.
_REMOTE = "saltern.minion.call.call_remote"

#: Module that sends control requests to the minion on this host.
_MINION = "saltern.minion.master.master_ports"

#: Module that registers running jobs. Without a master it is not loaded for functions with these prefixes, because they
#: change nothing that other jobs must know.
_PROCS = "saltern.minion.call.call_jobs"
_ALONE = ("test.", "grains.", "config.", "pillar.", "match.", "sys.")

_USAGE = "salt-call [options] <function> [arguments]"

#: Exit code for a function that does not exist, as in Salt.
_EX_UNKNOWN_FUNCTION = 255


def main() -> int:
    """Run ``salt-call`` with the process's arguments and return the exit code, the same as Salt's."""
    return run_command(lambda: run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run ``salt-call`` with the arguments ``argv`` and return the exit code. Raise CommandError or ConfigError."""
    made = parser()
    flags = made.parse(argv)
    options = _options(flags)
    configure("salt-call", options, flags.log_level)
    printer = Printer(flags, options)
    if not flags.words and not flags.grains and not flags.doc:
        made.error("a function is missing, as in: salt-call test.ping")
    if flags.doc and len(flags.words) > 1:
        made.error("You can only get documentation for one method at one time")
    fun, *words = _words(flags)
    positional, keywords = parse_arguments(words, [name.strip() for name in flags.no_parse.split(",")])
    printer.heed([{"__kwarg__": True, **keywords}])
    runtime, options, procs, remote, silence = opened_runtime(options, fun, local=flags.local)
    arguments = [*positional, *([keywords] if keywords else [])]
    jid = new_jid(time.time())
    described = {"__pub_fun": fun, "__pub_jid": jid, "__pub_pid": os.getpid(), "__pub_tgt": "salt-call"}
    try:
        with procs.record({"jid": jid, "fun": fun, "arg": arguments, "tgt": "salt-call"}) if procs else nullcontext():
            returned = runtime.call(fun, positional, {**keywords, **described}, executors(flags) or None)
    except StatecoreError as error:
        raise CommandError(str(error)) from error
    load = _load(options, fun, arguments, returned, flags.metadata)
    if remote is not None and not flags.no_return and not flags.doc:
        remote.report(options, load | {"success": returned.success, "own_jid": jid}, silence)
    if not flags.doc:
        returners = named(flags.returner or options.return_)
        runtime.deliver(returners, load | {"success": returned.success, "jid": jid})
    if returned.value == f"'{fun}' is not available." or _unknown(returned, fun):
        raise CommandError(str(returned.value), _EX_UNKNOWN_FUNCTION)
    if returned.error is not None:
        # As Salt's: what reads the output finds nothing that could be taken for a return.
        sys.stderr.write(f"{returned.error}\n")
        return returned.retcode if flags.retcode_passthrough else Exit.GENERIC
    if flags.doc:
        return _show_documentation(returned, printer)
    if flags.print_metadata:
        printer.show({"local": load | {"jid": jid}}, retcode=returned.retcode)
    else:
        printer.show({"local": returned.value}, returned.out, retcode=returned.retcode, fun=fun)
    if flags.retcode_passthrough:
        return returned.retcode
    return Exit.GENERIC if returned.retcode else Exit.OK


class OpenedRuntime(NamedTuple):
    """What a function of this host's minion needs to run in this process."""

    runtime: Runtime
    #: Options of the minion with one master.
    options: MinionOptions
    #: Register of the running jobs of this host, if it is used.
    procs: Any
    #: The module ``call_remote``; None without a master.
    remote: Any
    #: Decides how long requests wait for a master that does not answer.
    silence: Any


def opened_runtime(options: MinionOptions, fun: str, *, local: bool) -> OpenedRuntime:
    """Return the Runtime of this host's minion, with the master's files and pillar or (``local``, or if the options say
    so) without a master. ``fun``: the function that is called first. Raise CommandError if no master accepts the minion.
    """
    alone = local or options.file_client == "local" or options.master_type == "disable"
    remote = None if alone else importlib.import_module(_REMOTE)
    procs = importlib.import_module(_PROCS).directory(options, fun) if remote or not fun.startswith(_ALONE) else None
    if remote is None:
        return OpenedRuntime(_local(options, procs), options, procs, None, None)
    configured = remote.evaluated(options)
    options = remote.with_master(configured)
    silence = remote.silence_of(options)
    return OpenedRuntime(remote.runtime_of(options, configured, procs, silence), options, procs, remote, silence)


def parser() -> CommandParser:
    """Return the parser for the command line of ``salt-call``."""
    made = CommandParser("salt-call", _USAGE, "Runs an execution function on this host and shows what it returns.")
    made.add_argument(
        "--local",
        action="store_true",
        help="run without a master: take files from file_roots and pillar from pillar_roots of this host",
    )
    made.add_argument("--master", help="host name or address of the master, instead of the configured ones")
    made.add_argument("--id", help="minion id, instead of the configured one")
    for name, tree in (("--file-root", "state"), ("--pillar-root", "pillar")):
        made.add_argument(
            name,
            action="append",
            default=[],
            metavar="DIR",
            help=f"directory of the {tree} tree for saltenv base (with --local); may be repeated",
        )
    made.add_argument("--host-root", help="directory that is the root of the managed host (default: /)")
    made.add_argument(
        "--retcode-passthrough", action="store_true", help="exit with the function's retcode, instead of 0 or 1"
    )
    made.add_argument(
        "--no-return", "--no-return-event", action="store_true", help="do not send the return to the master's job cache"
    )
    made.add_argument(
        "--return",
        dest="returner",
        default="",
        metavar="NAME",
        help="returners that also receive the return, separated by commas",
    )
    made.add_argument(
        "--metadata",
        dest="print_metadata",
        action="store_true",
        help="show the whole return: jid, fun, fun_args, retcode and the value",
    )
    made.add_argument(
        "--set-metadata", dest="metadata", metavar="YAML", help="data that is stored with the job, as YAML"
    )
    add_executor_flags(made)
    made.add_argument("-g", "--grains", action="store_true", help="show the grains of this host (grains.items)")
    add_doc_flag(made)
    add_no_parse_flag(made)
    made.add_argument("--cachedir", metavar="DIR", help="directory for cached files, pillar and users' modules")
    made.add_argument(
        "-t",
        "--timeout",
        type=int,
        metavar="SEC",
        help="seconds to wait for an answer to each sign-in (default: auth_timeout)",
    )
    for names, dest, meaning in (
        (("-m", "--module-dirs"), "module_dirs", "directory with additional execution modules; may be repeated"),
        (("--states-dir",), "states_dirs", "directory with additional state modules; may be repeated"),
    ):
        made.add_argument(*names, dest=dest, action="append", default=[], metavar="DIR", help=meaning)
    # Accepted and ignored: grains are gathered at each call.
    made.add_argument("--refresh-grains-cache", action="store_true", help=argparse.SUPPRESS)
    made.read_stdin()
    made.refuse([*PROFILING, *_NOT_HERE])
    add_output_flags(made)
    return made


#: Options of Salt's salt-call that do not exist here, with the reason.
_NOT_HERE = (
    RefusedOption(("--proxyid",), True, "Saltern has no proxy minions"),
    RefusedOption(("--skip-grains",), False, "targets and templates need them"),
    RefusedOption(("--priv",), True, "run salt-call as that user"),
    RefusedOption(("-r", "--resources"), False, "Saltern has no resources"),
    RefusedOption(("--tgt",), True, "Saltern has no resources"),
    RefusedOption(("--tgt-type",), True, "Saltern has no resources"),
)


def _words(flags: argparse.Namespace) -> list[str]:
    """Return the function's name and its arguments from the command line; ``-g`` stands for grains.items, ``-d`` for sys.doc."""
    if flags.doc:
        return ["sys.doc", *(f"{start}*" for start in flags.words)]
    return ["grains.items"] if flags.grains else flags.words


def _show_documentation(returned: Returned, printer: Printer) -> int:
    if not isinstance(returned.value, Mapping):
        raise CommandError(str(returned.value))
    for fun in sorted(returned.value):
        if returned.value[fun]:
            printer.say(documentation(fun, str(returned.value[fun])))
    return Exit.OK


def _options(flags: argparse.Namespace) -> MinionOptions:
    options = load_minion(flags.config_dir)
    given: dict[str, Any] = {
        # A master given on the command line replaces the whole list.
        "master": flags.master,
        "master_type": "str" if flags.master else None,
        "id": flags.id,
        "host_root": flags.host_root,
        "cachedir": flags.cachedir,
        "auth_timeout": flags.timeout,
        "log_file": flags.log_file,
        "log_level_logfile": flags.log_file_level,
        "module_dirs": [*flags.module_dirs, *options.module_dirs] if flags.module_dirs else None,
        "states_dirs": [*flags.states_dirs, *options.states_dirs] if flags.states_dirs else None,
        "file_roots": _base_roots(flags.file_root),
        "pillar_roots": _base_roots(flags.pillar_root),
    }
    return dataclasses.replace(options, **{name: value for name, value in given.items() if value is not None})


def _base_roots(directories: Sequence[str]) -> dict[str, list[str]] | None:
    """Return the roots {"base": absolute paths} of directories from the command line; None without any."""
    return {"base": [str(Path(each).absolute()) for each in directories]} if directories else None


def _local(options: MinionOptions, procs: Jobs | None) -> Runtime:
    return local_runtime(
        as_opts(options, file_client="local", extension_modules=str(extension_directory(options))),
        jobs=procs,
        manage=partial(_manage, Path(options.cachedir)),
        fetches=True,
        refreshed=partial(_refreshed, Path(options.cachedir)) if options.master_type == "disable" else None,
    )


def _manage(cachedir: Path, area: str, request: Mapping[str, object]) -> dict[str, object]:
    """Send a request about the schedule or the beacons (``area``) to the minion on this host.

    Return the map that the minion answers. Raise CommandError if the minion refuses or does not run.
    """
    answer: dict[str, object] = importlib.import_module(_MINION).manage(cachedir, area, request)
    return answer


def _refreshed(cachedir: Path, what: str) -> bool:
    """Ask the minion on this host to refresh ``what``: pillar, modules or grains. Return True."""
    described: bool = importlib.import_module(_MINION).request_refresh([cachedir], what)
    return described


def _load(
    options: MinionOptions, fun: str, arguments: Sequence[object], returned: Returned, metadata: str | None
) -> dict[str, object]:
    """Return the map that ``salt-call`` sends to the master's job cache and to returners, without its JID."""
    load = {
        "id": options.id,
        "fun": fun,
        "fun_args": shown_arguments(fun, list(arguments)),
        "return": returned.value,
        "retcode": returned.retcode,
    }
    if metadata:
        load["metadata"] = value_of(metadata)
    return load | ({"out": returned.out} if returned.out else {})


def _unknown(returned: Returned, fun: str) -> bool:
    return (
        not returned.success
        and isinstance(returned.value, str)
        and returned.value.startswith(f"'{fun}' is not available.")
    )
