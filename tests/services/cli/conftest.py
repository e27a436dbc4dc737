"""A master and an event bus that live in the test: scripted answers, events in order, a clock that only waiting moves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from saltern.cli.context import CommandContext
from saltern.kit.config.master import ClientOptions

JID = "20260101000000000000"


@dataclass
class FakeMaster:
    """Answers control calls from ``answers`` (a value, an exception or a function of the fields) and plays ``events``.

    An event is (seconds after the start, tag, data); an exception in place of the tag is raised when its time comes.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[float, Any, Any]] = field(default_factory=list)
    hears: bool = True
    now: float = 0.0
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    #: subscribe, ready and call in the order in which they came.
    order: list[str] = field(default_factory=list)
    endpoint: str = "tcp://master:4507"

    def call(self, cmd: str, *, timeout: float | None = None, **fields: Any) -> Any:
        assert timeout is not None
        self.order.append(cmd)
        self.calls.append((cmd, copy.deepcopy(fields)))
        # Of silent minions, and of a job on them, a master knows nothing unless a test says so.
        answer = self.answers.get(cmd, {}) if cmd in ("known", "job_status") else self.answers[cmd]
        if isinstance(answer, Exception):
            raise answer
        return answer(fields) if callable(answer) else answer

    def subscribe(self, prefix: str) -> None:
        self.order.append(f"subscribe {prefix}")

    def ready(self, timeout: float) -> bool:
        self.order.append("ready")
        return self.hears

    def next(self, timeout: float) -> tuple[str, dict[str, Any]] | None:
        assert self.now < 3600, "the command waits for ever"
        if self.hears and self.events and self.events[0][0] <= self.now + timeout:
            when, tag, data = self.events.pop(0)
            self.now = max(self.now, when)
            if isinstance(tag, BaseException):
                raise tag
            return tag, data
        self.now += timeout
        return None

    def close(self) -> None:
        """Nothing to end."""

    def context(
        self, env: Mapping[str, str] | None = None, terminal: Callable[[str], object] | None = None
    ) -> CommandContext:
        return CommandContext(
            load=lambda config_dir: ClientOptions(user="tester", **self.options),
            load_region=lambda region: ClientOptions(user="tester", **self.options),
            control=lambda options, config_dir: self,  # type: ignore[arg-type, return-value]
            bus=lambda options, config_dir: self,  # type: ignore[arg-type, return-value]
            clock=lambda: self.now,
            env=env or {},
            terminal=terminal,
        )

    def sent(self, cmd: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.calls if name == cmd]


@pytest.fixture
def master() -> Callable[..., FakeMaster]:
    return FakeMaster
