"""The command ``salt-run``: runs a runner on the master and prints its result.

Three functions run in this command, because they print while they work: ``state.event``, ``jobs.watch`` and ``jobs.export``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from saltern.cli.context import CommandContext, no_bus, run_guarded, stock_codes
from saltern.cli.export_jobs import export_jobs
from saltern.cli.region_choice import add_region_flag, chosen_regions
from saltern.cli.sign_in import add_eauth_flags, signed_in
from saltern.cli.watch_events import watch_events
from saltern.cli.watch_job import JobWatcher, jid_of
from saltern.kit.command.arguments import documentation, parse_arguments, sendable
from saltern.kit.command.command_line import (
    PROFILING,
    CommandError,
    CommandParser,
    Exit,
    RefusedOption,
    add_async_flag,
    add_doc_flag,
    add_no_parse_flag,
)
from saltern.kit.command.output.flags import Printer, add_output_flags
from saltern.kit.config.master import ClientOptions
from saltern.kit.jobs.returns import NO_MATCH
from saltern.kit.jobs.runner_results import NotYet, runner_results
from saltern.kit.links.answers import RunnerAnswer
from saltern.kit.links.control import CONTROL_PATIENCE, ControlClient
from saltern.kit.links.event_bus import EventSubscriber

_EPILOG = """\
examples:
  salt-run jobs.list_jobs
  salt-run jobs.list_jobs after=2h function='state.*' success=False
  salt-run jobs.lookup_jid 20261121001824892890
  salt-run jobs.watch 20261121001824892890
  salt-run jobs.rerun 20261121001824892890 --failed
  salt-run state.event 'salt/job/*' pretty=True count=3

Exit codes: 0 done; 1 the runner failed or the master refused (an unknown function, say), or the runner's own retcode;
2 the runner asked minions, and none matched; 64 wrong command line; 69 the master does not answer; 78 wrong configuration.
Ctrl-C leaves the runner running: 0.
"""


#: Functions that run in this command -> documentation for ``-d``.
HERE: Mapping[str, str] = {
    "jobs.export": export_jobs.__doc__ or "",
    "jobs.watch": JobWatcher.__doc__ or "",
    "state.event": watch_events.__doc__ or "",
}


def main() -> int:
    """Run the command ``salt-run`` and return the exit code."""
    return run(sys.argv[1:])


def run(argv: Sequence[str], context: CommandContext | None = None) -> int:
    """Run ``salt-run`` with these arguments and return the exit code."""
    return run_guarded(lambda: _salt_run(_parse(argv), context or CommandContext()))


def _salt_run(flags: argparse.Namespace, context: CommandContext) -> int:
    options = context.started("salt-run", flags)
    printer = Printer(flags, options, context.env)
    fun, arg, kwarg = _call(flags)
    printer.heed([{"__kwarg__": True, **kwarg}])
    if flags.region:
        chosen = chosen_regions(flags.region, options, flags.config_dir)
        if len(chosen) > 1:
            raise CommandError("a runner runs in one region: name one with --region", Exit.USAGE)
        options = context.load_region(chosen[0])
        flags.config_dir = chosen[0].directory
    if fun == "jobs.export":
        return export_jobs(context.control(options, config_dir=flags.config_dir), printer, arg, kwarg)
    watched_jid = jid_of(arg, kwarg) if fun == "jobs.watch" else ""
    prefix = f"salt/job/{watched_jid}/" if watched_jid else "" if fun == "state.event" else "salt/run/"
    bus, heard = context.connect_bus(options, flags.config_dir, prefix)
    if fun == "state.event":
        if not heard:
            raise CommandError(no_bus(options), Exit.UNAVAILABLE)
        return watch_events(bus, printer, arg, kwarg)
    if not heard:
        what = "What becomes of the job" if watched_jid else "The result"
        sys.stderr.write(f"[WARNING ] {no_bus(options)} {what} is taken from the job cache.\n")
    control = context.control(options, config_dir=flags.config_dir)
    with signed_in(control, flags, context.env):
        if watched_jid:
            watcher = JobWatcher(control, bus, context.clock, printer, context.terminal, timeout=flags.timeout)
            return watcher.watch(watched_jid)
        job = control.call(
            "runner",
            timeout=CONTROL_PATIENCE,
            fun=fun,
            arg=arg,
            kwarg=kwarg,
            user=context.user(options),
            request_id=os.urandom(16).hex(),
        )
        if flags.asynchronous:
            printer.say(f"Executed command with job ID: {job['jid']}")
            return Exit.OK
        try:
            # Progress events of the runner, printed in Salt's form.
            on_event = (
                None
                if flags.quiet or flags.doc
                else lambda suffix, event: printer.show({"suffix": suffix, "event": event})
            )
            result = _result(job, control, bus, options, context, heard=heard, timeout=flags.timeout, on_event=on_event)
        except KeyboardInterrupt:
            sys.stderr.write(f"\nThe runner goes on. What it returns: salt-run jobs.lookup_jid {job['jid']}\n")
            raise
        if flags.doc:
            return _show_documentation(result, flags.words, printer)
        if not flags.quiet:
            _show(result["return"], printer)
        return exit_code(result)


def _call(flags: argparse.Namespace) -> tuple[str, list[object], dict[str, object]]:
    if flags.doc:
        return "sys.doc", flags.words, {}
    fun, *words = flags.words
    arg, kwarg = parse_arguments(words, [name.strip() for name in flags.no_parse.split(",")])
    return fun, arg, sendable(kwarg)


def _result(
    job: RunnerAnswer,
    control: ControlClient,
    bus: EventSubscriber,
    options: ClientOptions,
    context: CommandContext,
    *,
    heard: bool,
    timeout: int,
    on_event: Callable[[str, Mapping[str, object]], None] | None,
) -> Mapping[str, object]:
    try:
        found = runner_results(
            [job], control, bus, context.clock, options.id, heard=heard, timeout=timeout, on_event=on_event
        )
    except NotYet as late:
        raise CommandError(
            f"no result within {timeout} s; the runner goes on, and its result can be looked up with "
            f"salt-run jobs.lookup_jid {late.jid}"
        ) from late
    return found[job["jid"]]


def _show(value: object, printer: Printer) -> None:
    """Print a runner's result with the outputter that it names: {"data": ..., "outputter": ...}."""
    out = value.get("outputter") if isinstance(value, Mapping) else None
    if isinstance(value, Mapping) and set(value) == {"data", "outputter"}:
        value = value["data"]
    # A runner without an outputter may return a state run; only the user can know, by --out=highstate.
    printer.show(value, "highstate" if printer.options.out == "highstate" else out)


def _show_documentation(result: Mapping[str, object], names: Sequence[str], printer: Printer) -> int:
    docs = result["return"]
    if not isinstance(docs, Mapping):
        raise CommandError(str(docs))
    here = {fun: text for fun, text in HERE.items() if not names or f"{fun}.".startswith(f"{names[0]}.")}
    docs = {**docs, **here}
    for fun in sorted(docs):
        printer.say(documentation(fun, str(docs[fun])))
    return exit_code(result)


def exit_code(result: Mapping[str, object]) -> int:
    """Return the exit code of ``salt-run`` for a runner's result.

    It is the result's ``retcode`` if it has one (orchestrations do), else 0 for success or 1 for failure.
    """
    value = result.get("return")
    if value == NO_MATCH and stock_codes():
        return Exit.OK
    data = value.get("data") if isinstance(value, Mapping) else None
    for level in (result, value, data):
        if isinstance(level, Mapping) and isinstance(level.get("retcode"), int):
            return int(level["retcode"])
    return Exit.OK if result.get("success", True) else Exit.GENERIC


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    made = parser()
    flags = made.parse(undashed(argv))
    if flags.doc and len(flags.words) > 1:
        made.error("documentation can be asked for one function or module at a time")
    if not flags.words and not flags.doc:
        made.error("a function is needed, as in: salt-run jobs.list_jobs")
    return flags


def parser() -> CommandParser:
    """Return the parser for the command line of ``salt-run``."""
    made = CommandParser(
        "salt-run",
        "salt-run [options] <function> [arguments]",
        "Runs a runner on the master and shows its result.",
        _EPILOG,
    )
    add_doc_flag(made)
    add_async_flag(made)
    made.add_argument(
        "-t",
        "--timeout",
        type=int,
        default=0,
        metavar="SEC",
        help="seconds to wait for the result at most; 0 (default): no limit",
    )
    made.add_argument("-q", "--quiet", action="store_true", help="do not print the result")
    add_no_parse_flag(made)
    made.add_argument("--skip-grains", action="store_true", help=argparse.SUPPRESS)  # a master gathers none
    made.read_stdin()
    add_region_flag(made)
    add_eauth_flags(made)
    made.refuse([*PROFILING, RefusedOption(("--jid",), True, "the master names its jobs")])
    add_output_flags(made)
    return made


class RunnerOptionNames(NamedTuple):
    """The named arguments of a runner that may also be written as options (``--limit 5`` for ``limit=5``)."""

    #: Options without a value: ``--failed`` is ``failed=True``.
    flags: tuple[str, ...] = ()
    #: Options with a value.
    words: tuple[str, ...] = ()


_FILTERS = ("after", "before", "limit", "cursor", "function", "minion", "user", "target", "success", "state")

DASHED: Mapping[str, RunnerOptionNames] = {
    "jobs.export": RunnerOptionNames(("returns",), ("file", *_FILTERS)),
    "jobs.list_jobs": RunnerOptionNames((), _FILTERS),
    "jobs.list_jobs_filter": RunnerOptionNames((), tuple(name for name in _FILTERS if name != "limit")),
    "jobs.rerun": RunnerOptionNames(("failed", "lost", "all")),
    "jobs.stats": RunnerOptionNames((), ("window", "rows", *_FILTERS)),
}


def undashed(argv: Sequence[str]) -> list[str]:
    """Return the words of a ``salt-run`` command with options of the runner (``--limit 5``) as named arguments (``limit=5``)."""
    at = next((at for at, word in enumerate(argv) if word in DASHED), None)
    if at is None:
        return list(argv)
    names = DASHED[argv[at]]
    words = list(argv[: at + 1])
    rest = iter(argv[at + 1 :])
    for word in rest:
        name, equals, value = word[2:].partition("=") if word.startswith("--") else ("", "", "")
        name = name.replace("-", "_")
        if name in names.flags:
            words.append(f"{name}={value}" if equals else f"{name}=True")
        elif name in names.words:
            following = value if equals else next(rest, None)
            # An option without its value stays as it is, and the parser reports it.
            words.append(word if following is None else f"{name}={following}")
        else:
            words.append(word)
    return words
