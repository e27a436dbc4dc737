"""The command ``salt``: publishes a job, waits for its returns and prints them as they arrive.

It subscribes to the event bus before it publishes, so that no return is missed. If the bus does not answer, it reads the job
cache instead, twice a second at first.
Source: docs/protocol.md#cli-wait
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from saltern.cli import report
from saltern.cli.context import CommandContext, no_bus, run_guarded
from saltern.cli.publication import no_match, publish_job
from saltern.cli.region_choice import chosen_regions
from saltern.cli.request import SaltRequest, parse_request
from saltern.cli.return_printer import JobLookup, MasterReturns, ReturnPrinter, for_programs, print_on_stderr
from saltern.cli.sign_in import signed_in
from saltern.kit.command.command_line import CommandError, Exit
from saltern.kit.command.output.flags import Printer
from saltern.kit.config.master import ClientOptions, shown
from saltern.kit.jobs.batch import run_batch
from saltern.kit.jobs.subset import draw
from saltern.kit.jobs.watch import JobWatch
from saltern.kit.links.control import CONTROL_PATIENCE, ControlClient, ControlTimeout
from saltern.kit.process.tracing import VARIABLE, Span, Tracing, parent_of
from statecore.model import yaml
from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    from saltern.cli import regions
else:
    # Only for a job in several regions.
    regions = lazy_module("saltern.cli.regions")


def main() -> int:
    """Run the command ``salt`` and return the exit code."""
    return run(sys.argv[1:])


def run(argv: Sequence[str], context: CommandContext | None = None) -> int:
    """Run ``salt`` with the words ``argv``: publish the job, print its returns, and return the exit code."""
    return run_guarded(lambda: _salt(parse_request(argv), context or CommandContext()))


def _salt(request: SaltRequest, context: CommandContext) -> int:
    flags = request.flags
    options = context.started("salt", flags)
    printer = Printer(flags, options, context.env)
    if flags.config_dump:
        printer.say(yaml.dump(shown(options), default_flow_style=False).rstrip("\n"))
        return Exit.OK
    printer.heed(request.arg)
    tracing = Tracing(options.tracing, "salt-cli")
    called = {"salt.fun": request.fun_name, "salt.tgt": str(request.tgt), "salt.tgt_type": request.tgt_type}
    try:
        with tracing.span("salt.cli.salt", parent_of(context.env.get(VARIABLE)), "CLIENT", **called) as span:
            code = _run(request, context, options, printer, span)
            if code:
                span.fail(f"exit code {code}")
            return code
    finally:
        tracing.close()


def _run(request: SaltRequest, context: CommandContext, options: ClientOptions, printer: Printer, span: Span) -> int:
    flags = request.flags
    chosen = chosen_regions(flags.region, options, flags.config_dir)
    if len(chosen) > 1:
        return regions.run_in_regions(request, context, options, printer, span, chosen)
    if chosen:
        options = context.load_region(chosen[0])
        flags.config_dir = chosen[0].directory
    control = context.control(options, config_dir=flags.config_dir)
    with signed_in(control, flags, context.env):
        return _run_signed_in(request, context, options, printer, span, control)


def _run_signed_in(
    request: SaltRequest,
    context: CommandContext,
    options: ClientOptions,
    printer: Printer,
    span: Span,
    control: ControlClient,
) -> int:
    flags = request.flags
    if flags.preview:
        return _preview(request, control, printer)
    publish = partial(publish_job, request, control, options, context, span)
    if flags.asynchronous:
        job = publish(request.tgt, request.tgt_type, request.fun, request.arg)
        if not job["jid"]:
            return no_match(printer, request)
        printer.say(f"Executed command with job ID: {job['jid']}")
        return Exit.OK
    bus, heard = context.connect_bus(options, flags.config_dir, "salt/job/")
    if not heard:
        sys.stderr.write(f"[WARNING ] {no_bus(options)} The returns are read from the job cache.\n")
    watch = JobWatch(control, bus, context.clock, context.user(options), heard=heard)
    follow = partial(watch.follow, timeout=flags.timeout or options.timeout, gather_timeout=options.gather_job_timeout)
    printed = ReturnPrinter(request, printer, options, context.terminal)
    returns = MasterReturns(printed, JobLookup(control), show=printed.shows_timeouts)
    tgt, tgt_type = request.tgt, request.tgt_type
    try:
        if flags.subset:
            tgt = draw(tgt, tgt_type, request.fun_name, flags.subset, publish, watch, follow)
            tgt_type = "list"
            if not tgt:
                return no_match(printer, request)
        call = (tgt, tgt_type, request.fun, request.arg)
        if size := _size_of_batch(flags, options, control, call):
            matched = run_batch(
                call,
                size,
                publish,
                watch,
                follow,
                returns,
                print_on_stderr if for_programs(flags) else printer.say,
                failhard=flags.failhard,
                wait=flags.batch_wait,
                expect=printed.expect,
                tell_steps=not for_programs(flags),
            )
            return printed.close(worst=True) if matched else no_match(printer, request)
        job = publish(*call)
        if not job["jid"]:
            return no_match(printer, request)
        printed.expect(len(job["minions"]) + len(job.get("missing", ())))
        returns.set_minions([*job["minions"], *job.get("missing", ())], job.get("when_back_until", 0))
        printed.announce(job["jid"])
        follow(job, returns)
        watch.run()
    except KeyboardInterrupt:
        sys.stderr.write("\nExiting gracefully on Ctrl-c\n" + (report.later(watch.jid) + "\n" if watch.jid else ""))
        return Exit.OK
    except ControlTimeout as error:
        hint = f"\n{report.later(watch.jid)}" if watch.jid else ""
        raise CommandError(f"{error}{hint}", Exit.UNAVAILABLE) from error
    return printed.close()


def _preview(request: SaltRequest, control: ControlClient, printer: Printer) -> int:
    wanted = {"tgt": request.tgt, "tgt_type": request.tgt_type, "delimiter": request.flags.delimiter}
    found = control.call("targets", timeout=CONTROL_PATIENCE, **wanted)
    minions = sorted({*found["minions"], *found["missing"]})
    if not minions:
        return no_match(printer, request)
    printer.show(minions)
    return Exit.OK


def _size_of_batch(
    flags: argparse.Namespace,
    options: ClientOptions,
    control: ControlClient,
    call: tuple[object, str, object, list[object]],
) -> str:
    """Return the batch size as on the command line or in the configuration; empty text if the job goes to all minions at once."""
    limit = options.batch_safe_limit if flags.batch_safe_limit is None else flags.batch_safe_limit
    # A job for minions that are away, or one that nobody waits for, is no batch.
    if flags.batch or not limit or flags.when_back:
        return str(flags.batch or "")
    wanted = {"tgt": call[0], "tgt_type": call[1], "delimiter": flags.delimiter}
    found = control.call("targets", timeout=CONTROL_PATIENCE, **wanted)
    return str(flags.batch_safe_size or options.batch_safe_size) if len(found["minions"]) >= limit else ""
