"""Starts a command in such a way that Ctrl-C at any moment, or a standard output that cannot be written, ends it with
one line on stderr and an exit code.

Almost nothing is imported before Ctrl-C is caught; the program's module is named by the caller and imported here.
"""

from __future__ import annotations

import os
import signal
import sys

from saltern.kit.command import standard_output

#: Replaces ``typing.TYPE_CHECKING``: importing ``typing`` takes longer than all other imports of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import NoReturn

#: Salt's text at Ctrl-C; its commands then end with 0.
SAID = "\nExiting gracefully on Ctrl-c\n"

#: Exit code after Ctrl-C of commands that Salt does not have: the shells' code for an unfinished command.
INTERRUPTED = 130


def run(module: str, interrupted: int = 0) -> NoReturn:
    """Run ``main()`` of ``module`` and end the process with its exit code.

    A Ctrl-C that ``main`` does not handle ends the process with a line on stderr and the exit code ``interrupted``. A process that
    was started with SIGINT ignored (by nohup, or in the background by a script) goes on ignoring SIGINT.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        # While modules are imported, a KeyboardInterrupt could be caught by a module, or leave a module half imported.
        signal.signal(signal.SIGINT, _ending(interrupted, SAID))
    main = _main(module)
    try:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = _code_of(main)
    except BrokenPipeError:
        # The program that reads the output (less, head) has closed the pipe.
        standard_output.silence()
        code = 0
    except OSError:
        if not (why := standard_output.fault()):
            raise
        _say(f"ERROR: standard output cannot be written: {why}\n")
        code = 1
    except KeyboardInterrupt:
        _say(SAID)
        code = interrupted
    if ours:
        # All output is written, so a late Ctrl-C ends the process silently.
        signal.signal(signal.SIGINT, _ending(code, ""))
    _leave(code)


def _main(module: str) -> Callable[[], int]:
    import importlib

    main: Callable[[], int] = importlib.import_module(module).main
    return main


def _code_of(main: Callable[[], int]) -> int:
    """Run ``main`` and return its exit code, or that of its SystemExit, after standard output is flushed."""
    try:
        code = main()
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        code = end.code
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def _ending(code: int, text: str) -> Callable[[int, FrameType | None], NoReturn]:
    """Return a signal handler that ends the process at once with the exit code and the text on stderr."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        _say(text)
        os._exit(code)

    return end


def _leave(code: int) -> NoReturn:
    """End the process with the exit code: wait for threads, run the exit functions and flush the output, but free no memory."""
    import atexit
    import threading

    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _say(text: str) -> None:
    # Written to the file descriptor: the signal may have interrupted a write to Python's stream.
    if text and sys.stderr is not None:
        try:
            os.write(sys.stderr.fileno(), text.encode())
        except (OSError, ValueError):
            return
