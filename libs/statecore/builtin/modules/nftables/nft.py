"""Calls of the host's ``nft`` program, and parsing of its lists."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import CommandResult
from statecore.system.hostfiles import nftables_rules


def run(ctx: Context, words: Sequence[str], *options: str) -> CommandResult:
    """Run the host's ``nft`` and return its result, also if its exit code is not 0."""
    # After `--`, nft takes no word for an option.
    return ctx.host.run(["nft", *options, "--", *words])


def listed(ctx: Context, *words: str) -> list[dict[str, Any]]:
    """Return the entries of ``nft --json list`` with the words ``words``: a list of maps with one key each. Raise
    CommandError if nft fails.
    """
    done = run(ctx, ["list", *words], "--json")
    if done.retcode:
        raise CommandError(f"nft list {' '.join(words)}: {done.stderr.strip()}")
    try:
        return list(json.loads(done.stdout or "{}").get("nftables", []))
    except ValueError as error:
        raise CommandError(f"nft list {' '.join(words)}: its output is not JSON: {error}") from error


def chain(ctx: Context, table: str, name: str, family: str) -> dict[str, Any] | None:
    """Return the data of an nftables chain as nft lists it (name, handle, policy, ...), None if the chain does not
    exist.
    """
    for each in listed(ctx, "chains", nftables_rules.of(family)):
        found = each.get("chain", {})
        if (found.get("table"), found.get("name")) == (table, name):
            return dict(found)
    return None


def listing(ctx: Context, table: str, chain: str | None, family: str) -> str:
    """Return the text of an nftables chain's rules with their handles. Raise CommandError if nft fails."""
    done = run(ctx, ["list", "chain", nftables_rules.of(family), table, str(chain)], "--handle")
    if done.retcode:
        raise CommandError(f"nft list chain {table} {chain}: {done.stderr.strip()}")
    return done.stdout


def newest(listing: str) -> tuple[str, str] | None:
    """Return (handle, text) of the nftables rule with the highest handle in a listing, which was added last. Return
    None if there is no rule.
    """
    found = [(int(number), text) for text, number in nftables_rules.with_handles(listing)]
    return (str(max(found)[0]), max(found)[1]) if found else None
