"""The command ``_auth``: reads and stores the minion's key, and answers as ``saltwire.handshake`` decides.

Source: docs/protocol.md#sign-in
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from saltern.kit.config.master import MasterOptions
from saltern.mworker.commands.resend import heard_of, send_waiting
from saltern.mworker.sign_in_lists import listing, listing_of_grains
from saltern.mworker.worker_context import WorkerContext
from saltwire import handshake, tags
from saltwire.keys import PrivateKey, canonical_pem
from saltwire.pack import packb

_LOG = logging.getLogger("saltern.mworker")

#: Key states in which an autosign option can still accept the key.
_UNDECIDED = ("pending", "denied")

#: States that a stranger's new key gets; ``max_pending_keys`` limits the number of keys in each.
_STRANGERS = frozenset({handshake.KeyState.PENDING, handshake.KeyState.REJECTED})


def answer(context: WorkerContext, version: int, load: Mapping[str, object], *, own: bool = False) -> bytes:
    """Return the signed answer to a minion's sign-in as bytes: the acceptance or the refusal. ``own``: a Saltern
    minion sent it, not stock Salt.

    Raises PeerFault for a request that cannot get a signed answer.
    """
    request = handshake.parse_sign_in(load, version=version, own=own)
    now_ms = int(time.time() * 1000)
    known = context.store.sign_ins.begin(request.id, request.pub, now_ms)
    # Many minions sign in because they could not decrypt a publication; an older key would lose that publication.
    context.take_epochs(known.epochs)
    verdict = _decide(context, request, known.stored)
    context.metrics.auth_attempts.labels(verdict.act).inc()
    context.fire(
        tags.AUTH, {"result": verdict.ret is not False, "act": verdict.act, "id": request.id, "pub": request.pub}
    )
    context.log.info("sign-in: %s", verdict.act, extra={"minion": request.id})
    master_key = handshake.choose_master_key(request, context.keys.all)
    if not verdict.accepted or request.public is None:
        return handshake.refusal_reply(request, verdict.ret, master_key=master_key)
    if context.keys.previous is not None:
        master_key = _replaced_master_key(context, request, master_key)
    acceptance = known.acceptance if verdict.store is None else context.store.minion_keys.acceptance(request.id)
    if known.waited_for:
        send_waiting(context, request.id)
    elif not known.seen:
        heard_of(context, request.id)
    return handshake.success_reply(
        request,
        request.public,
        master_key=master_key,
        aes_key_string=context.aes_key_string(),
        session_key_string=context.session_key_string(request.id, request.public, acceptance=acceptance),
        publish_port=context.options.published_port or context.options.publish_port,
        pub_sig=context.keys.signature(master_key, request.sig_algo),
        master_pems=context.keys.pems,
    )


def _replaced_master_key(context: WorkerContext, request: handshake.SignInRequest, known: PrivateKey) -> PrivateKey:
    """Return the master's private key that signs the answer to an accepted minion while the master's key is replaced.

    ``known``: the key that the minion accepts. The result is this key, and the answer tells the minion the newest one.
    Exception: for a stock minion with ``master_sign_pubkey`` the result is the newest key. The fingerprint of the
    result is stored in Redis.
    """
    newest = context.keys.private
    if not request.own and context.keys.signature(newest, request.sig_algo) is not None:
        known = newest
    context.store.master_keys.set(request.id, known.public.fingerprint())
    return known


def _decide(
    context: WorkerContext, request: handshake.SignInRequest, stored: tuple[str, str] | None
) -> handshake.Verdict:
    """Decide about a sign-in, store the key in its new state and fire the key event; return the Verdict (state, reply, act)."""
    pem = request.pub
    if request.public is None:
        context.log.info("the key of a sign-in is refused: %s", request.unreadable, extra={"minion": request.id})
        return handshake.UNREADABLE_KEY
    options = context.options
    accepts = _signed(options, request) if stored is None or stored[0] in _UNDECIDED else ""
    permissive = options.permissive_pki_access
    rejects = listing("autoreject_file", options.autoreject_file, request.id, permissive=permissive, unsure=True)
    verdict = handshake.decide(
        handshake.KeyState(stored[0]) if stored else handshake.KeyState.NONE,
        same_pem=stored is not None and (stored[1] == pem or canonical_pem(stored[1]) == pem),
        auto_accept=bool(accepts),
        auto_reject=bool(rejects),
        open_mode=options.open_mode,
        full=_full(context, request.id),
    )
    if verdict.store in _STRANGERS:
        state = verdict.store.value
        if len(context.store.minion_keys.ids(state)) >= context.options.max_pending_keys:
            context.log.error("%d keys are %s already (max_pending_keys)", context.options.max_pending_keys, state)
            return handshake.FULL if verdict.store is handshake.KeyState.PENDING else replace(verdict, store=None)
    if verdict.store is not None:
        context.store.minion_keys.store(request.id, pem, verdict.store.value)
        if stored is None or stored[0] != verdict.store.value:
            by = {handshake.KeyState.ACCEPTED: accepts, handshake.KeyState.REJECTED: rejects}.get(verdict.store, "")
            if by:
                context.log.info("the key is %s by %s", verdict.store.value, by, extra={"minion": request.id})
            fingerprint = request.public.fingerprint()
            context.audit.record(
                "sign-in", request.id, result=verdict.act, key=fingerprint, **({"by": by} if by else {})
            )
            context.fire(tags.KEY, {"result": True, "act": verdict.act, "id": request.id, "pub": pem})
    return verdict


def _full(context: WorkerContext, minion_id: str) -> bool:
    limit = context.options.max_minions
    if not limit:
        return False
    present = context.store.presence.present(int((time.time() - context.options.presence_window) * 1000))
    return len(present) >= limit and minion_id not in present


def _signed(options: MasterOptions, request: handshake.SignInRequest) -> str:
    """Return which option accepts the minion's key without an operator, with the line of its list; "" if none does."""
    if options.auto_accept:
        return "auto_accept"
    permissive = options.permissive_pki_access
    return (
        listing("autosign_file", options.autosign_file, request.id, permissive=permissive)
        or listing_of_grains(options.autosign_grains_dir, request.autosign_grains, permissive=permissive)
        # Checked last, because the check deletes the file.
        or ("autosign_dir" if _allowed_once(options.autosign_dir, options.autosign_timeout, request.id) else "")
    )


def _allowed_once(directory: str, minutes: int, minion_id: str) -> bool:
    """Return whether ``autosign_dir`` has a file named like the minion, and delete it. Files older than ``minutes`` are
    deleted, too.
    """
    if not directory:
        return False
    oldest = time.time() - 60 * minutes
    try:
        for place in list(Path(directory).iterdir()):
            if minutes > 0 and place.is_file() and place.stat().st_mtime < oldest:
                place.unlink()
        (Path(directory) / minion_id).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        _LOG.error("autosign_dir: %s cannot be used: %s", directory, error.strerror)
        return False
    return True


def unsupported(text: str) -> bytes:
    """Return the unsigned answer to a sign-in with an unknown algorithm. Source: docs/protocol.md#sign-in-decisions"""
    return packb({"enc": "clear", "load": {"ret": text}})
