"""A master that is away for long: who has begun something for the minion itself waits for it no longer."""

from __future__ import annotations

from pathlib import Path

import pytest
import zmq

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.engine.backends import MasterBackend
from saltern.minion.master.away_flag import PATIENCE, AwayFlag, is_away
from saltern.minion.master.identity import Identity
from saltern.minion.master.master_ports import RemoteFiles
from saltern.minion.master.masters import Masters
from saltwire.handshake import Credentials
from saltwire.keys import generate_key_string
from saltwire.zmq import NoAnswer, RequestSocket
from statecore.model.errors import CommandError


def test_it_is_told_after_a_while_and_until_the_master_is_back(tmp_path: Path) -> None:
    absence = AwayFlag(tmp_path, shared=True)
    for connected, now, told in (
        (True, 100.0, False),
        (False, 101.0, False),
        (False, 100.0 + PATIENCE, False),
        (False, 101.0 + PATIENCE, True),
        (False, 500.0, True),
        (True, 501.0, False),
        (False, 502.0, False),
        (False, 502.0 + PATIENCE, True),
    ):
        absence.check(connected=connected, now=now)
        assert is_away(tmp_path) is told, now
    # The next start knows nothing of it.
    AwayFlag(tmp_path, shared=True)
    assert not is_away(tmp_path)


def test_the_only_master_is_waited_for(tmp_path: Path) -> None:
    absence = AwayFlag(tmp_path, shared=False)
    for now in (0.0, PATIENCE, 2 * PATIENCE):
        absence.check(connected=False, now=now)
        assert not is_away(tmp_path)


def test_a_place_that_cannot_be_written_is_a_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    absence = AwayFlag(tmp_path / "none", shared=True)
    absence.check(connected=False, now=0.0)
    absence.check(connected=False, now=PATIENCE)
    assert f"{tmp_path / 'none' / 'master-away'}: No such file or directory" in caplog.text


def test_a_request_is_given_up_while_it_waits(tmp_path: Path) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = RequestSocket(context, "tcp://127.0.0.1:1")
    looks = iter([False, True])
    with pytest.raises(NoAnswer, match=r"the master at tcp://127\.0\.0\.1:1 is away"):
        socket.ask(b"", iter([600.0]), given_up=lambda: next(looks))
    socket.close()
    context.term()


@pytest.mark.parametrize("own", [True, False])
def test_jobs_of_the_minion_itself_give_up(tmp_path: Path, own: bool) -> None:
    options = MinionOptions(
        id="web1", master="127.0.0.1:1", cachedir=str(tmp_path), request_channel_timeout=3, request_channel_tries=1
    )
    masters = Masters("127.0.0.1:1", ("127.0.0.1:1", "127.0.0.1:2"))
    credentials = Credentials(generate_key_string(), generate_key_string(), 4505, "")
    home = MasterBackend(options, masters, Identity.load("web1", tmp_path / "pki", 2048), credentials)
    state = masters.state(options.cachedir)
    state.mkdir(parents=True)
    (state / "master-away").touch()
    runtime = home.runtime({}, None, dict, {})  # type: ignore[arg-type]
    home.prepare_job(runtime, {"fun": "state.apply", "own": own})
    files = runtime.context.files
    assert isinstance(files, RemoteFiles)
    with pytest.raises(CommandError, match="is away" if own else "no answer from the master"):
        files.envs()
    files.channel().close()
