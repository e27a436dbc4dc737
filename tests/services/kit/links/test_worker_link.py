"""The frames of 4516: told apart by their first byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltern.kit.config.master import MasterOptions
from saltern.kit.links import worker_link
from saltern.kit.links.worker_link import ANSWER, LAST, READY, SHORT, WORK, Ready, Reply, Work


def test_kinds_are_told_apart() -> None:
    kinds = [
        value
        for name, value in vars(worker_link).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, bytes) and len(value) == 1
    ]
    assert len(kinds) == len(set(kinds)) == 16


def test_two_pulses_may_be_lost() -> None:
    assert MasterOptions().worker_silence > worker_link.PULSE_SECONDS * 3


@pytest.mark.parametrize(("silence", "seconds"), [(60, 2), (4, 2), (3, 1.5), (2, 1), (1, 1)])
def test_an_idle_worker_reports_twice_within_the_silence(silence: int, seconds: float) -> None:
    assert worker_link.ready_seconds(silence) == seconds


#: What stands in a field of a frame: names of pools, keys and minions, which have no NUL.
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.integers(0, 2**64 - 1)


@given(
    ticket=NUMBERS,
    side=st.sampled_from([b"minion", b"control", worker_link.AGAIN]),
    client=NAMES,
    payload=st.binary(max_size=20),
    pool=NAMES,
    offer=st.one_of(st.just(b""), NUMBERS.map(lambda number: b"%d" % number)),
    short=st.booleans(),
)
def test_a_work_is_read_as_it_was_sent(
    ticket: int, side: bytes, client: str, payload: bytes, pool: str, offer: bytes, *, short: bool
) -> None:
    sent = worker_link.work_frames(ticket, side, client.encode(), payload, pool, offer, short=short)
    wanted = Work(b"%d" % ticket, side, client.encode(), payload, pool.encode(), offer, short, "here")
    assert worker_link.read_work(sent, "here") == wanted
    assert not short or len(sent) == 2


@given(ticket=NUMBERS, payload=st.binary(max_size=20), minion=NAMES, last=st.booleans(), short=st.booleans())
def test_a_reply_is_read_as_it_was_sent(ticket: int, payload: bytes, minion: str, *, last: bool, short: bool) -> None:
    work = Work(b"%d" % ticket, b"minion", worker_link.WHO, b"", b"", b"", short, "here")
    sent = worker_link.reply_frames(work, payload, minion, last=last)
    assert worker_link.read_reply(sent) == Reply(ticket, payload, minion, last)
    assert not short or len(sent) == 2


@pytest.mark.parametrize(("offer", "count"), [(0, 1), (7, 2)])
def test_a_ready_is_read_as_it_was_sent(offer: int, count: int) -> None:
    kind, *fields = worker_link.ready_frames(b"fast", offer, count)
    assert kind == READY
    assert worker_link.read_ready(fields) == Ready("fast", b"%d" % offer if offer else b"", count, short=True)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ([], Ready("", b"", 1, short=False)),
        ([b"fast"], Ready("fast", b"", 1, short=False)),
        ([b"fast", b"7", b"2"], Ready("fast", b"7", 2, short=False)),
        ([b"fast", b"7", b"0"], Ready("fast", b"7", 1, short=False)),
        ([b"fast", b"7", b"9" * 5000, SHORT], Ready("fast", b"", 1, short=True)),
    ],
)
def test_a_ready_of_an_earlier_release_and_a_wrong_one_are_read(fields: list[bytes], wanted: Ready) -> None:
    assert worker_link.read_ready(fields) == wanted


@pytest.mark.parametrize("fields", [0, 1, 2])
def test_a_reqserver_of_an_earlier_release_is_understood(fields: int) -> None:
    more = [b"fast", b"7"][:fields]
    found = worker_link.read_work([WORK, b"1", b"minion", b"", b"load", *more], "here")
    pool, offer = [*more, b"", b""][:2]
    assert found == Work(b"1", b"minion", b"", b"load", pool, offer, False, "here")


@given(
    st.lists(
        st.one_of(st.sampled_from([WORK, ANSWER, LAST, b"W\0" * 6, b"A\0x\0", b"A\x001\0", b"9" * 5000]), st.binary()),
        min_size=1,
        max_size=8,
    )
)
def test_whatever_arrives_is_read_or_another_message(frames: list[bytes]) -> None:
    worker_link.read_ready(frames)
    reply, work = worker_link.read_reply(frames), worker_link.read_work(frames, "here")
    assert reply is None or frames[0][:1] in (ANSWER, LAST)
    assert work is None or frames[0][:1] == WORK
