"""``salt --region``: one job at the masters of several regions, printed as one answer.

Each region's master is asked in a thread of its own, so that a master that does not answer delays no other region's returns. The
job has the same JID in all regions: a minion that moves while the job runs runs it once, and returns it to either master.
Source: docs/operations/regions.md
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import TypeAlias

from saltern.cli import report
from saltern.cli.context import CommandContext, failure_code, no_bus
from saltern.cli.publication import no_match, publish_job
from saltern.cli.region_choice import Region
from saltern.cli.region_merge import RegionMerge, ReturnKind
from saltern.cli.request import SaltRequest
from saltern.cli.return_printer import Absence, JobLookup, MasterReturns, ReturnPrinter
from saltern.cli.sign_in import ask_once, signed_in
from saltern.kit.command.command_line import CommandError, Exit
from saltern.kit.command.output.flags import Printer
from saltern.kit.config.master import ClientOptions, ConfigError
from saltern.kit.jobs.returns import retcode_of
from saltern.kit.jobs.watch import JobWatch
from saltern.kit.links.answers import PublishAnswer
from saltern.kit.links.control import CONTROL_PATIENCE, ControlClient, ControlError, ControlTimeout
from saltern.kit.process.logs import visible
from saltern.kit.process.tracing import Span
from saltwire.jid import new_jid

_LOG = logging.getLogger("saltern.regions")

#: Seconds after which a thread looks whether the other regions have all returns.
_TICK = 0.1

#: Seconds that a region's thread has to end after the last return: it signs out.
_ENDING = 2.0


@dataclass(frozen=True, slots=True)
class Matched:
    """A region's master has named the minions of the target; nothing is published."""

    minions: Sequence[str]


@dataclass(frozen=True, slots=True)
class Published:
    """A region's master has answered the publication of the job."""

    job: PublishAnswer


@dataclass(frozen=True, slots=True)
class Returned:
    """A minion has returned the job to a region's master."""

    minion: str
    load: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class NotReturned:
    """A minion has not returned the job to a region's master. ``absence`` is None if such minions are not shown."""

    minion: str
    absence: Absence | None


@dataclass(frozen=True, slots=True)
class Warned:
    """A region's thread has a warning for the operator."""

    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A region cannot be asked, or its master refuses or does not answer. ``code``: the exit code for this."""

    reason: str
    code: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A region's thread has ended. ``defect``: an exception that no region can cause."""

    defect: BaseException | None = None


RegionEvent: TypeAlias = Matched | Published | Returned | NotReturned | Warned | Failed | Ended

Put: TypeAlias = Callable[[RegionEvent], None]

#: Asks one region: (its options, its master's client, the receiver of events, the flag that nothing more is wanted).
Ask: TypeAlias = Callable[[Region, ClientOptions, ControlClient, Put, threading.Event], None]


class _QueueSink:
    """Passes a region's returns and absences on as events."""

    def __init__(self, put: Put) -> None:
        self._put = put

    def add(self, minion: str, load: Mapping[str, object]) -> None:
        if not isinstance(minion, str) or not isinstance(load, Mapping) or "return" not in load:
            raise ControlError("AnswerError", f"its master passed on a malformed return of {minion!r}")
        self._put(Returned(minion, load))

    def add_absent(self, minion: str, absence: Absence | None) -> None:
        self._put(NotReturned(minion, absence))


def run_in_regions(
    request: SaltRequest,
    context: CommandContext,
    options: ClientOptions,
    printer: Printer,
    span: Span,
    regions: Sequence[Region],
) -> int:
    """Run ``salt`` at the masters of several regions and return the exit code.

    The code is that of the regions that answer, unless a region failed: then it is that of the failure (69: its master
    does not answer). Raises CommandError for options that count the minions of one master.
    """
    flags = request.flags
    _refuse_options_of_one_master(flags)
    ask_once(flags)
    job = _RegionJob(request, context, options, printer, span, regions)
    if flags.preview:
        return job.preview()
    limit = options.batch_safe_limit if flags.batch_safe_limit is None else flags.batch_safe_limit
    if limit and not flags.when_back and len(job.matched()) >= limit:
        raise CommandError(
            f"the target matches {limit} minions or more (batch_safe_limit), and a batch runs in one region: "
            "name one with --region, or give --batch-safe-limit=0",
            Exit.USAGE,
        )
    return job.publish() if flags.asynchronous else job.run()


def _refuse_options_of_one_master(flags: argparse.Namespace) -> None:
    given = [name for name, value in (("--batch", flags.batch), ("--subset", flags.subset)) if value]
    if given:
        raise CommandError(
            f"{given[0]} counts the minions of one region: run the command for each, with --region", Exit.USAGE
        )
    if flags.make_token:
        raise CommandError("-T keeps the token of one master: name one region with --region", Exit.USAGE)


def _shown(text: str) -> str:
    """Return what a region's master said, for the terminal: no control characters, and no line of its own."""
    return visible(text).replace("\n", "\n  ")


class _RegionJob:
    """One command ``salt`` in several regions."""

    def __init__(
        self,
        request: SaltRequest,
        context: CommandContext,
        options: ClientOptions,
        printer: Printer,
        span: Span,
        regions: Sequence[Region],
    ) -> None:
        self._request = request
        self._context = context
        self._options = options
        self._printer = printer
        self._span = span
        self._regions = regions
        self._jid = new_jid(time.time())
        #: Largest exit code of the regions that failed; 0: none failed.
        self._failure = 0
        #: Regions that have the job.
        self._having: list[str] = []

    def preview(self) -> int:
        """Print the minions that the target matches in any region. Return the exit code."""
        minions = self.matched()
        if not minions:
            return self._failure or no_match(self._printer, self._request)
        self._printer.show(minions)
        return self._failure

    def matched(self) -> list[str]:
        """Return the sorted ids of the minions that the target matches in any region."""
        found: set[str] = set()
        with contextlib.closing(self._events(self._ask_targets)) as events:
            for region, event in events:
                if isinstance(event, Matched):
                    found.update(event.minions)
                self._note(region, event)
        return sorted(found)

    def publish(self) -> int:
        """Publish the job without waiting for it, and print its JID. Return the exit code."""
        with contextlib.closing(self._events(self._ask_to_publish)) as events:
            for region, event in events:
                self._note(region, event)
        if not self._having:
            return self._failure or no_match(self._printer, self._request)
        self._printer.say(f"Executed command with job ID: {self._jid}")
        return self._failure

    def run(self) -> int:
        """Publish the job, wait for its returns and print them. Return the exit code."""
        shown = ReturnPrinter(self._request, self._printer, self._options, self._context.terminal)
        merge = RegionMerge(region.name for region in self._regions)
        follow = partial(self._ask_and_follow, show=shown.shows_timeouts)
        try:
            with contextlib.closing(self._events(follow)) as events:
                for region, event in events:
                    self._note(region, event)
                    self._merge(merge, shown, region, event)
                    for minion, absence in merge.given_up():
                        shown.add_absent(minion, absence)
                    if merge.settled:
                        break
        except KeyboardInterrupt:
            hints = [report.later(self._jid, region) for region in self._having]
            sys.stderr.write("\n".join(["\nExiting gracefully on Ctrl-c", *hints, ""]))
            return Exit.OK
        if not self._having:
            return self._failure or no_match(self._printer, self._request)
        code = shown.close()
        return self._failure or code

    def _merge(self, merge: RegionMerge, shown: ReturnPrinter, region: str, event: RegionEvent) -> None:
        if isinstance(event, Published):
            # Ids without a key are in the answer also if no minion matched; nobody waits for them then.
            named = [*event.job["minions"], *event.job.get("missing", ())] if event.job["jid"] else []
            shown.expect(len(merge.published(region, named)))
            if event.job["jid"] and len(self._having) == 1:
                shown.announce(self._jid)
        elif isinstance(event, Returned):
            kind = merge.returned(region, event.minion, event.load)
            if kind is ReturnKind.FIRST:
                shown.add(event.minion, event.load)
            elif kind is ReturnKind.DIFFERENT:
                sys.stderr.write(
                    f"[WARNING ] minion {event.minion} returned another result in region {region}; the first is shown: "
                    f"salt-run --region {region} jobs.lookup_jid {self._jid}\n"
                )
                if retcode_of(event.load):
                    shown.fail_unseen()
            elif kind is ReturnKind.UNNAMED:
                sys.stderr.write(
                    f"[WARNING ] region {region} passed on a result of {visible(event.minion)!r}, a minion that it did not"
                    f" name when it published the job; the result is not shown: salt-run --region {region}"
                    f" jobs.lookup_jid {self._jid}\n"
                )
        elif isinstance(event, NotReturned):
            merge.absent(region, event.minion, event.absence)
        elif isinstance(event, Failed | Ended):
            lost = Absence(report.region_lost(self._jid, region)) if shown.shows_timeouts else None
            for minion in merge.ended(region):
                merge.absent(region, minion, lost)

    def _note(self, region: str, event: RegionEvent) -> None:
        """Remember a region's failure or job, and print its warnings and errors on stderr."""
        if isinstance(event, Failed):
            self._failure = max(self._failure, event.code)
            sys.stderr.write(f"ERROR: region {region}: {_shown(event.reason)}\n")
        elif isinstance(event, Warned):
            sys.stderr.write(f"[WARNING ] region {region}: {_shown(event.text)}\n")
        elif isinstance(event, Published) and event.job["jid"]:
            self._having.append(region)

    def _events(self, ask: Ask) -> Generator[tuple[str, RegionEvent], None, None]:
        """Yield (region, event) of all regions, asked at the same time, until each region's thread has ended.

        If the caller closes the iterator, the threads are told to end.
        """
        queue: SimpleQueue[tuple[str, RegionEvent]] = SimpleQueue()
        enough = threading.Event()
        threads = {
            region.name: threading.Thread(target=self._ask_region, args=(region, ask, queue, enough), daemon=True)
            for region in self._regions
        }
        for thread in threads.values():
            thread.start()
        left = set(threads)
        try:
            while left:
                region, event = queue.get()
                if isinstance(event, Ended):
                    left.discard(region)
                    if event.defect is not None:
                        raise event.defect
                yield region, event
        finally:
            enough.set()
            deadline = time.monotonic() + _ENDING
            for thread in threads.values():
                thread.join(max(deadline - time.monotonic(), 0))

    def _ask_region(
        self,
        region: Region,
        ask: Ask,
        queue: SimpleQueue[tuple[str, RegionEvent]],
        enough: threading.Event,
    ) -> None:
        def put(event: RegionEvent) -> None:
            queue.put((region.name, event))

        defect: BaseException | None = None
        try:
            options = self._context.load_region(region)
            control = self._context.control(options, config_dir=region.directory)
            with signed_in(control, self._request.flags, self._context.env, use_kept=False):
                ask(region, options, control, put, enough)
        except (ControlError, ControlTimeout, CommandError, ConfigError) as error:
            put(Failed(error.message if isinstance(error, ControlError) else str(error), failure_code(error)))
        except (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError) as error:
            # What this master sent does not fit, beyond what the client checks. The other regions' answers are printed.
            _LOG.debug("region %s", region.name, exc_info=error)
            reason = f"its master sent what this command cannot read: {type(error).__name__}: {error}"
            put(Failed(reason, Exit.GENERIC))
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            defect = error
        put(Ended(defect))

    def _ask_targets(
        self, region: Region, options: ClientOptions, control: ControlClient, put: Put, enough: threading.Event
    ) -> None:
        request = self._request
        wanted = {"tgt": request.tgt, "tgt_type": request.tgt_type, "delimiter": request.flags.delimiter}
        found = control.call("targets", timeout=CONTROL_PATIENCE, **wanted)
        # An id without a key in one region may have one in another.
        put(Matched([*found["minions"], *(found["missing"] if request.flags.preview else ())]))

    def _ask_to_publish(
        self, region: Region, options: ClientOptions, control: ControlClient, put: Put, enough: threading.Event
    ) -> None:
        put(Published(self._published(options, control)))

    def _ask_and_follow(
        self,
        region: Region,
        options: ClientOptions,
        control: ControlClient,
        put: Put,
        enough: threading.Event,
        *,
        show: bool,
    ) -> None:
        flags, context = self._request.flags, self._context
        bus, heard = context.connect_bus(options, region.directory, "salt/job/")
        if not heard:
            put(Warned(f"{no_bus(options)} The returns are read from the job cache."))
        returns = MasterReturns(_QueueSink(put), JobLookup(control), show=show, region=region.name)
        watch = JobWatch(control, bus, context.clock, context.user(options), heard=heard)
        if enough.is_set():
            # Ctrl-C came before this region had the job.
            return
        job = self._published(options, control)
        put(Published(job))
        if not job["jid"]:
            return
        returns.set_minions([*job["minions"], *job.get("missing", ())], job.get("when_back_until", 0))
        watch.follow(job, returns, timeout=flags.timeout or options.timeout, gather_timeout=options.gather_job_timeout)
        while watch.unfinished and not enough.is_set():
            watch.step(_TICK)

    def _published(self, options: ClientOptions, control: ControlClient) -> PublishAnswer:
        request = self._request
        call = (request.tgt, request.tgt_type, request.fun, request.arg)
        job = publish_job(request, control, options, self._context, self._span, *call, jid=self._jid)
        if job["jid"] not in (None, self._jid):
            raise ControlError("AnswerError", f"its master published {job['jid']!r} in place of the job {self._jid}")
        return job
