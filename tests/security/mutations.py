"""Removes one defence after the other, and checks that a named attack then succeeds: ``python -m tests.security.mutations``.

Each defence is one text of the source. A copy of libs/ and services/ gets another text in its place, and the attack's test
runs on the copy: it must fail. Exit code 1 if an attack is still refused: either no test covers the defence, or a second
defence refuses the attack, too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: pytest's exit code for "some tests failed"; a mutation that cannot be imported gives another one.
_FAILED = 1


@dataclass(frozen=True)
class Mutation:
    """A defence as a text of the source, the text that replaces it, and the test of the attack that must then succeed."""

    defence: str
    file: str
    old: str
    new: str
    #: ``file::test`` in this folder.
    attack: str
    #: Further (old, new) texts of the file: a second defence, behind which the first one would not be missed.
    also: tuple[tuple[str, str], ...] = ()


_HANDLER = "services/saltern/mworker/request_handler.py"
_RECEIVED = "services/saltern/mworker/commands/received_files.py"
_ARCHIVES = "libs/statecore/system/hostfiles/archives.py"
_MINION_PORT = "services/saltern/reqserver/minion_port.py"
_KEYS = "libs/saltwire/keys.py"
_REDACTION = "libs/statecore/model/redaction.py"
_BENEATH = "libs/statecore/host/beneath.py"
_TREE_ROOTS = "libs/statecore/sources/tree_roots.py"
_AUDIT = "libs/masterstore/audit_chain.py"
_WEBHOOK = "libs/statecore/builtin/engines/webhook.py"
_LOGINS = "services/saltern/mworker/commands/logins.py"
_CONFINEMENT = "libs/statecore/lsp/confinement.py"
_RENDERER = "libs/statecore/lsp/worker.py"
_JOB_VIEWS = "services/saltern/mworker/commands/job_views.py"
_LIVE_ROWS = "services/saltern/kit/config/access_rows.py"
_EVENT_VIEWS = "services/saltern/api/event_views.py"
_AUTHORISE = "services/saltern/mworker/authorise.py"
_YAML_LOADERS = "libs/statecore/model/yaml/loaders.py"
_BASE_60_BY_TAG = (
    '        if ":" in text:\n            return text\n        check_number(text, node.start_mark)\n'
    "        return super().construct_yaml_int(node)\n"
)
_YAML_BOUNDS = "libs/statecore/model/yaml/bounds.py"

_TREE = "libs/statecore/host/content/guarded_tree.py"
_PRIVATE = "libs/statecore/host/content/private_files.py"

MUTATIONS = (
    Mutation(
        "events of other minions are not shown",
        _EVENT_VIEWS,
        'if what in ("ret", "prog") and len(parts) > 4:\n            return event if self.view.covers(parts[4]) else None',
        'if what in ("ret", "prog") and len(parts) > 4:\n            return event',
        "test_events_of_others.py::test_an_event_of_others_is_not_shown",
    ),
    Mutation(
        "a minion's return makes no owner",
        _EVENT_VIEWS,
        'by_master = what == "new" or parts[1] in _MASTERS',
        "by_master = True",
        "test_events_of_others.py::test_an_event_of_others_is_not_shown",
    ),
    Mutation(
        "others' new jobs are shown without arguments",
        _EVENT_VIEWS,
        'return self._begun(event) if what == "new" else None',
        'return event if what == "new" else None',
        "test_events_of_others.py::test_of_a_job_on_the_own_minion_the_beginning_is_shown",
    ),
    Mutation(
        "only @events and @jobs hear everything",
        _LOGINS,
        "everything = not decided(sender.rights, Kind.EVENTS, [Call(\"\")]).refused",
        "everything = True",
        "test_events_of_others.py::test_a_listener_hears_what_the_rows_cover",
    ),
    Mutation(
        "rows are read again",
        _LIVE_ROWS,
        "if self.follows and now - self._looked >= _LOOK_EVERY:",
        "if self.follows and not self._stamps:",
        "test_live_rows.py::test_a_token_ends_with_its_rows",
    ),
    Mutation(
        "a new file of rows is noticed",
        _LIVE_ROWS,
        "found |= {each.path, each.path.parent}",
        "found = {each.path}",
        "test_live_rows.py::test_an_included_file_counts",
    ),
    Mutation(
        "broken rows change nothing",
        _LIVE_ROWS,
        "            self._log_fault(error)\n            return\n",
        "            self._log_fault(error)\n            self._rows = rows_of(MasterOptions())\n            return\n",
        "test_live_rows.py::test_a_broken_file_changes_nothing",
    ),
    Mutation(
        "@jobs changes no job",
        "services/saltern/kit/links/rights.py",
        "by_module = call.fun not in CHANGE_A_JOB",
        "by_module = True",
        "test_rights_matrix.py::test_each_command_does_what_the_matrix_says",
    ),
    Mutation(
        "a job is repeated by the rights of its sender",
        _HANDLER,
        "self._authorise(sender if by_sender and not is_role(sender) else carrier, row, fields)",
        "self._authorise(carrier, row, fields)",
        "test_rights_matrix.py::test_each_command_does_what_the_matrix_says",
    ),
    Mutation(
        "others' jobs are seen on covered minions alone",
        _JOB_VIEWS,
        "found[job.jid] = JobView(None if arguments else minions, arguments)",
        "found[job.jid] = JobView(None, arguments)",
        "test_rights_matrix.py::test_each_command_does_what_the_matrix_says",
    ),
    Mutation(
        "arguments of others' jobs are for those who might have run them",
        _JOB_VIEWS,
        "arguments = complete and self._might_have_run(job, minions)",
        "arguments = True",
        "test_rights_matrix.py::test_each_command_does_what_the_matrix_says",
    ),
    Mutation(
        "a job belongs to its sender, not to a name",
        _JOB_VIEWS,
        'return load.get("owner") == self._sender.owner',
        'return load.get("user") == self._sender.name',
        "test_rights_of_jobs.py::test_a_name_makes_no_owner",
    ),
    Mutation(
        "filters tell nothing about what is not seen",
        "services/saltern/mworker/commands/jobs.py",
        "and (view.whole or not only_whole)",
        "",
        "test_rights_matrix.py::test_each_command_does_what_the_matrix_says",
    ),
    Mutation(
        "api_acl is asked when a user signs in",
        _LOGINS,
        "if identity is None or not _may_come(context, sender, identity.user, fields):",
        "if identity is None:",
        "test_api_acl.py::test_credentials_do_not_count_from_elsewhere",
    ),
    Mutation(
        "api_acl is asked when a token is used",
        _LOGINS,
        "if found is None or not _may_come(context, sender, found.user, fields):",
        "if found is None:",
        "test_api_acl.py::test_a_token_does_not_count_from_elsewhere",
    ),
    Mutation(
        "api_acl is asked by the name of external_auth",
        _LOGINS,
        "not _may_come(context, sender, identity.user, fields)",
        "not _may_come(context, sender, user, fields)",
        "test_api_acl.py::test_the_name_is_that_of_external_auth",
    ),
    Mutation(
        "a token in a chunk is looked up from its address",
        "services/saltern/api/sessions.py",
        "if not isinstance(token, str) or await sessions.user_of(token, address) is None:",
        "if not isinstance(token, str):",
        "test_api_acl.py::test_a_token_does_not_count_from_elsewhere",
    ),
    Mutation(
        "a target sees the pillar of covered minions alone",
        _AUTHORISE,
        "seen = None if unlimited else covered(context, sender.rights)",
        "seen = None",
        "test_pillar_oracle.py::test_a_right_guess_is_answered_like_a_wrong_one",
    ),
    Mutation(
        "a runner's publication sees what its sender sees",
        _AUTHORISE,
        "seen = covered(context, sender.rights) if within is None and known is None else within",
        "seen = within",
        "test_pillar_oracle.py::test_a_right_guess_is_answered_like_a_wrong_one",
    ),
    Mutation(
        "a publication sees the pillar of minions within the right alone",
        _AUTHORISE,
        "within_reach = None if everywhere else decision.reach(matching)",
        "within_reach = None if everywhere else frozenset(context.store.minion_keys.accepted())",
        "test_pillar_oracle.py::test_a_minions_job_tells_nothing_about_others",
    ),
    Mutation(
        "addresses match covered minions alone",
        "libs/statecore/targeting/match.py",
        "        if not subject[3]:",
        "        if False:",
        "test_pillar_oracle.py::test_a_right_guess_is_answered_like_a_wrong_one",
    ),
    Mutation(
        "ranges match covered minions alone",
        "services/saltern/mworker/targets.py",
        "return names if seen is None else [name for name in names if name in seen]",
        "return names",
        "test_pillar_oracle.py::test_a_right_guess_is_answered_like_a_wrong_one",
    ),
    Mutation(
        "only a runner names another sender",
        "services/saltern/mworker/senders.py",
        "if given is None or carrier.way is not Way.KEY or carrier.client != _RUNNERS_KEY:",
        "if given is None:",
        "test_pillar_oracle.py::test_only_a_runner_names_another_sender",
    ),
    Mutation(
        "our files are for their owner",
        _PRIVATE,
        "FILE_MODE = 0o600",
        "FILE_MODE = 0o644",
        "test_private_caches.py::test_others_read_nothing_of_a_writer",
    ),
    Mutation(
        "our directories are for their owner",
        _PRIVATE,
        "DIRECTORY_MODE = 0o700",
        "DIRECTORY_MODE = 0o755",
        "test_private_caches.py::test_others_read_no_download",
    ),
    Mutation(
        "downloads are private",
        "libs/statecore/sources/downloads.py",
        "with private_files.writer(place) as new:",
        'with private_files.directory(place.parent) and place.open("wb") as new:',
        "test_private_caches.py::test_others_read_no_copy_of_a_run",
    ),
    Mutation(
        "files of the master are private",
        "services/saltern/minion/master/master_ports.py",
        "with private_files.writer(cached) as file:",
        'with private_files.directory(cached.parent) and cached.open("wb") as file:',
        "test_private_minions.py::test_others_read_nothing_of_a_minion",
    ),
    Mutation(
        "a rotated log stays private",
        "services/saltern/kit/process/logs.py",
        "errors=self.errors, opener=private_files.opener)",
        "errors=self.errors)",
        "test_private_caches.py::test_others_read_nothing_of_a_writer",
    ),
    Mutation(
        "git's files are private",
        "libs/statecore/sources/gitrepos/git.py",
        "            umask=0o777 & ~private_files.DIRECTORY_MODE,\n",
        "",
        "test_private_caches.py::test_others_read_nothing_of_a_writer",
    ),
    Mutation(
        "an upgrade closes an old cache",
        "services/saltern/kit/process/own_directories.py",
        "        yield private_files.close(top)\n",
        "        yield 0\n",
        "test_private_caches.py::test_an_upgrade_closes_an_old_cache",
    ),
    Mutation(
        "an upgrade changes no file with several names",
        _PRIVATE,
        "        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:",
        "        if stat.S_ISREG(found.st_mode):",
        "test_private_caches.py::test_an_upgrade_changes_nothing_outside",
    ),
    Mutation(
        "an upgrade leaves files of other users",
        _PRIVATE,
        "    if found.st_uid != os.geteuid() or not found.st_mode & mask:",
        "    if not found.st_mode & mask:",
        "test_private_caches.py::test_an_upgrade_leaves_files_of_other_users",
    ),
    Mutation(
        "no linked directory of another user is entered",
        _TREE,
        "            if not links or _is_foreign(os.fstat(ways[-1])):",
        "            if False:",
        "test_key_directories.py::test_a_directory_of_keys_is_a_link_to_a_directory_of_root",
    ),
    Mutation(
        "no link of another user is read",
        _TREE,
        "if self._links and stat.S_ISLNK(os.fstat(opened).st_mode) and not _is_foreign(directory):",
        "if stat.S_ISLNK(os.fstat(opened).st_mode):",
        "test_moving_files.py::test_a_link_to_a_file_of_root_is_not_read",
    ),
    Mutation(
        "no hard link of another user is read",
        _TREE,
        "            if found.st_nlink > 1 and found.st_uid != directory.st_uid and _is_foreign(directory):",
        "            if False:",
        "test_key_directories.py::test_printed_secrets_hold_no_planted_file",
    ),
    Mutation(
        "only regular files are read",
        _TREE,
        "            if not stat.S_ISREG(found.st_mode):",
        "            if False:",
        "test_moving_files.py::test_the_import_of_keys_waits_for_no_fifo",
    ),
    Mutation(
        "root gives away nothing that another user may have moved",
        _TREE,
        "                    if foreign:",
        "                    if False:",
        "test_key_directories.py::test_a_file_in_the_users_directory_is_not_given_away",
    ),
    Mutation(
        "names of files in a configuration are names",
        "libs/statecore/model/file_name.py",
        """    if "/" in text:""",
        "    if False:",
        "test_moving_files.py::test_a_name_of_the_configuration_leads_nowhere",
    ),
    Mutation(
        "an include stays inside",
        "services/saltern/moving/files.py",
        "        elif self._outside:",
        "        elif True:",
        "test_moving_files.py::test_an_include_reads_nothing_outside",
    ),
    Mutation(
        "an imported configuration is for the roles' group",
        "services/saltern/moving/main.py",
        "_CONFIG_MODE = 0o640",
        "_CONFIG_MODE = 0o644",
        "test_moving_files.py::test_others_do_not_read_what_is_written",
    ),
    Mutation(
        "an import checks the roles' keys before it writes",
        "services/saltern/moving/main.py",
        "        check_keys(directory)",
        "        pass",
        "test_moving_files.py::test_keys_that_cannot_be_completed_change_nothing",
    ),
    Mutation(
        "an export writes ids of minions alone",
        "services/saltern/moving/minion_data.py",
        "        if not is_minion_id(minion):\n            raise",
        "        if False:\n            raise",
        "test_moving_files.py::test_an_export_writes_no_minion_outside",
    ),
    Mutation(
        "nonces are read before they are signed",
        "libs/saltwire/handshake.py",
        "if not is_nonce(nonce) and (version >= 2 or nonce is not None):",
        "if False:",
        "test_signing.py::test_a_sign_in_gets_no_signature_of_a_chosen_nonce",
    ),
    Mutation(
        "a minion refuses a packed map as publication",
        "libs/saltwire/publication.py",
        "    if _is_packed_map(sealed):",
        "    if False:",
        "test_signing.py::test_a_minion_refuses_a_publication_that_its_master_signed_unread",
    ),
    Mutation(
        "serials rise",
        "libs/saltwire/crypticle.py",
        "if not isinstance(serial, int) or serial <= self._last:",
        "if not isinstance(serial, int):",
        "test_public_cves.py::test_cve_2022_22936_a_job_is_not_published_again",
    ),
    Mutation(
        "values are counted before they are built",
        "libs/saltwire/pack.py",
        "        check_values(data, most)",
        "        pass",
        "test_request_bounds.py::test_an_encrypted_load_is_counted_before_it_is_built",
    ),
    Mutation(
        "only the canonical key is stored",
        "libs/saltwire/handshake.py",
        'pub="" if public is None else public.pem,',
        "pub=pub,",
        "test_request_bounds.py::test_nothing_but_the_key_is_stored",
    ),
    Mutation(
        "tags about a minion are for that minion",
        "libs/saltwire/tags.py",
        "return about.kind in _OF_MINIONS and about.minion == minion",
        "return True",
        "test_events.py::test_a_tag_that_is_not_for_minions_is_dropped",
    ),
    Mutation(
        "the id of an event is the sender's",
        "services/saltern/mworker/commands/events.py",
        'context.fire(tag, {**data, "id": minion_id})',
        'context.fire(tag, {"id": minion_id, **data})',
        "test_events.py::test_the_id_of_an_event_is_the_senders",
    ),
    Mutation(
        "a key without a row has no right",
        _HANDLER,
        "            if decided(rights, kind, calls).refused:",
        "            if False:",
        "test_rights.py::test_a_key_that_no_option_names_may_do_nothing",
    ),
    Mutation(
        "a job is asked about on its own minions",
        _HANDLER,
        " and minions <= set(jobs.expected(jid))",
        "",
        "test_find_job.py::test_a_changed_question_is_refused",
    ),
    Mutation(
        "recorded requests are answered only",
        _HANDLER,
        "return came_before and repeat is Repeat.ANSWERED and not self._again",
        "return False",
        "test_replay.py::test_a_repeated_request_changes_nothing",
    ),
    Mutation(
        "old requests are refused",
        _HANDLER,
        "        if admission.verdict is Verdict.OLD:",
        "        if False:",
        "test_replay.py::test_an_old_request_is_refused",
    ),
    Mutation(
        "sessions end with the acceptance of a key",
        "services/saltern/mworker/worker_context.py",
        'fingerprint=f"{fingerprint} {acceptance}" if acceptance else fingerprint,',
        "fingerprint=fingerprint,",
        "test_replay.py::test_a_session_ends_with_its_key",
    ),
    Mutation(
        "older forms of a message are refused",
        "libs/saltwire/envelope.py",
        "    if envelope.version < minimum:",
        "    if False:",
        "test_versions.py::test_no_old_message_is_answered",
    ),
    Mutation(
        "records in Redis have codes",
        "libs/masterstore/record_mac.py",
        "        if not compare_digest(self._mac(kind, _bytes(record)), code):",
        "        if False:",
        "test_redis_writer.py::test_a_forged_publication_is_not_signed",
    ),
    Mutation(
        "accepted keys have codes",
        "libs/masterstore/record_mac.py",
        '    records.check(ACCEPTED_KEY, key_record(minion, pem), code, f"{keys.minion_keys(\'accepted\')}[{minion}]")',
        "    return",
        "test_forged_keys.py::test_a_forged_key_does_not_sign_in",
    ),
    Mutation(
        "a job that is published again has a code",
        "libs/masterstore/jobs.py",
        "            self._records.check(OWN_LOAD, load_record(jid, load or b\"\", 0, 0), code, name)\n",
        "",
        "test_redis_writer.py::test_a_changed_job_is_not_published_again",
    ),
    Mutation(
        "a pillar in Redis is that of one minion",
        "services/saltern/mworker/pillar_seal.py",
        "if (name, place) == (minion, environments):",
        "if True:",
        "test_redis_writer.py::test_a_minion_gets_no_other_pillar_from_the_cache",
    ),
    Mutation(
        "secret pillar is hidden in returns",
        "libs/statecore/runtime/runtime.py",
        "found._replace(value=self.hidden(found.value), error=error)",
        "found",
        "test_secret_pillar.py::test_a_highstate_shows_no_secret_pillar",
    ),
    Mutation(
        "secret pillar is hidden in logs",
        "libs/statecore/runtime/secret_pillar.py",
        "    handler.addFilter(made)\n",
        "    pass\n",
        "test_secret_pillar.py::test_a_highstate_shows_no_secret_pillar",
    ),
    Mutation(
        "secret pillar is hidden in events",
        "libs/statecore/runtime/secret_pillar.py",
        "        shown = self._secrets.hide(data)",
        "        shown = data",
        "test_secret_pillar.py::test_a_highstate_shows_no_secret_pillar",
    ),
    Mutation(
        "mine data has a code",
        "libs/masterstore/cache.py",
        "        self._records.check(MINE, _mine_record(minion, fun, packed), code, where)\n",
        "",
        "test_redis_writer.py::test_forged_mine_data_is_not_given_to_minions",
    ),
    Mutation(
        "events in Redis have codes",
        "libs/masterstore/event_codes.py",
        "        return any(compare_digest(mac(kind, record), code) for mac in self._macs)",
        "        return True",
        "test_kept_events.py::test_a_forged_event_is_not_obeyed",
    ),
    Mutation(
        "events without a code are refused",
        "libs/masterstore/event_codes.py",
        "return None if self._accept_unsigned else Fault.UNSIGNED\n        found",
        "return None\n        found",
        "test_kept_events.py::test_a_forged_event_is_not_obeyed",
    ),
    Mutation(
        "a time is under the code of an event",
        "libs/masterstore/event_codes.py",
        "        if entered_ms is not None and abs(entered_ms - int(ms)) > CLOCKS_MS:",
        "        if False:",
        "test_kept_events.py::test_a_forged_event_is_not_obeyed",
    ),
    Mutation(
        "an event is delivered once",
        "libs/masterstore/event_codes.py",
        "            return new or known != stream_id",
        "            return False",
        "test_kept_events.py::test_an_event_is_not_obeyed_twice",
    ),
    Mutation(
        "the table of reactions has a code",
        "libs/masterstore/event_groups.py",
        'return version, "" if fault else shown',
        "return version, shown",
        "test_kept_events.py::test_a_changed_table_of_reactions_is_not_used",
    ),
    Mutation(
        "a dead event has a code",
        "libs/masterstore/event_groups.py",
        "        fault = self._codes.fault(event.frame, event.to, event.seal)\n",
        "        fault = None\n",
        "test_kept_events.py::test_a_forged_dead_event_is_not_handled_again",
    ),
    Mutation(
        "a time is under the code of a publication",
        "services/saltern/publisher/main.py",
        "    if abs(entered_ms - recorded_ms) > _CLOCKS_MS:",
        "    if False:",
        "test_redis_writer.py::test_an_old_publication_is_not_sent_again",
    ),
    Mutation(
        "a pushed file follows no link outside",
        _RECEIVED,
        "        with directory.opened(Links.BENEATH) as top:",
        "        with directory.opened(Links.ANYWHERE) as top:",
        "test_tree_opener.py::test_a_pushed_file_follows_no_link_outside",
        (
            ("minions, directory.derived, 0o777)", "minions, directory.derived, 0o777, links=Links.ANYWHERE)"),
            ("top, above, 0o777, links=Links.BENEATH)", "top, above, 0o777, links=Links.ANYWHERE)"),
            ("flags, 0o666, links=Links.BENEATH)", "flags, 0o666, links=Links.ANYWHERE)"),
        ),
    ),
    Mutation(
        "a pushed file is a regular file",
        _RECEIVED,
        "        if not stat.S_ISREG(status.st_mode):",
        "        if False:",
        "test_tree_opener.py::test_a_pushed_file_waits_for_no_fifo",
        (("        file.seek(loc)", "        return"),),
    ),
    Mutation(
        "a pushed file has a name",
        _RECEIVED,
        "    if not parts or any(",
        "    if False and any(",
        "test_public_cves.py::test_cve_2024_38824_a_pushed_file_stays_in_its_directory",
        (
            ("def place_of(", "beneath._plain = lambda path, links: path or '.'\n\n\ndef place_of("),
            ("        with directory.opened(Links.BENEATH) as top:", "        with directory.opened(Links.ANYWHERE) as top:"),
            ("top, above, 0o777, links=Links.BENEATH)", "top, above, 0o777, links=Links.ANYWHERE)"),
            ("flags, 0o666, links=Links.BENEATH)", "flags, 0o666, links=Links.ANYWHERE)"),
        ),
    ),
    Mutation(
        "wheel functions stay in their trees",
        "services/saltern/mworker/commands/roots.py",
        "file = TreeRoot(str(root)).file(str(relative), Links.BENEATH)",
        "file = TreeRoot(str(root)).file(str(relative), Links.ANYWHERE)",
        "test_public_cves.py::test_a_wheel_function_stays_in_its_tree",
    ),
    Mutation(
        "an environment is a name",
        "libs/statecore/sources/local_tree.py",
        """    return name not in ("", ".", "..") and "/" not in name and "\\0" not in name""",
        "    return True",
        "test_public_cves.py::test_cve_2025_22240_no_pillar_environment_leads_outside",
        (("def is_saltenv_name(", "beneath._plain = lambda path, links: path or '.'\n\n\ndef is_saltenv_name("),),
    ),
    Mutation(
        "links of a tree without followed links stay inside: the kernel checks each component",
        _BENEATH,
        "    Links.BENEATH: _BENEATH | _NO_MAGICLINKS,",
        "    Links.BENEATH: _NO_MAGICLINKS,",
        "test_tree_opener.py::test_nothing_outside_of_a_tree_is_shown",
    ),
    Mutation(
        "links of a tree without followed links stay inside: without openat2 the path is walked",
        _BENEATH,
        "    if links is Links.ANYWHERE:\n        return os.open(",
        "    if True:\n        return os.open(",
        "test_tree_opener.py::test_nothing_outside_is_shown_without_openat2",
    ),
    Mutation(
        "magic links are never followed",
        _BENEATH,
        "    Links.ANYWHERE: _NO_MAGICLINKS,",
        "    Links.ANYWHERE: 0,",
        "test_tree_opener.py::test_magic_links_are_not_followed_even_if_links_are",
    ),
    Mutation(
        "the open of a file of a tree waits for no FIFO",
        _BENEATH,
        "READ = os.O_RDONLY | os.O_NONBLOCK |",
        "READ = os.O_RDONLY |",
        "test_tree_opener.py::test_a_fifo_that_takes_the_place_of_a_file_holds_no_worker",
    ),
    Mutation(
        "files of a tree are regular files",
        _TREE_ROOTS,
        "            if not stat.S_ISREG(os.fstat(descriptor).st_mode):",
        "            if False:",
        "test_tree_opener.py::test_a_fifo_that_takes_the_place_of_a_file_holds_no_worker",
    ),
    Mutation(
        "a file of a tree is opened beneath its root at each use",
        _TREE_ROOTS,
        "        return made(self.path, relative)",
        "        return Path(self.path, relative)",
        "test_tree_opener.py::test_a_path_that_was_found_leads_out_no_later",
    ),
    Mutation(
        "the name of a saltenv is no link",
        _TREE_ROOTS,
        "    return links if links is Links.ANYWHERE else Links.REFUSED",
        "    return Links.ANYWHERE",
        "test_tree_opener.py::test_the_name_of_a_saltenv_leads_nowhere",
    ),
    Mutation(
        "names of saltenvs that do not exist are not remembered",
        "libs/statecore/sources/local_tree.py",
        "        if root.derived and walk.stamps.get(str(root.path)) is None:",
        "        if False:",
        "test_tree_opener.py::test_names_of_saltenvs_fill_no_memory",
    ),
    Mutation(
        "synchronised modules stay in their directory",
        "libs/statecore/sources/extension_modules.py",
        "        with confined(target) as top:",
        "        with __import__('contextlib').nullcontext(target) as top:",
        "test_tree_opener.py::test_synchronised_modules_stay_in_their_directory",
    ),
    Mutation(
        "a commit has no names that lead outside",
        "libs/statecore/sources/gitrepos/tree.py",
        """        if not {"", ".", ".."}.isdisjoint(path.split("/")):""",
        "        if False:",
        "test_tree_opener.py::test_a_commit_has_no_names_that_lead_outside",
    ),
    Mutation(
        'a value of pillar or a grain is one name of a path of Vault',
        'libs/statecore/builtin/ext_pillar/vault.py',
        'field: substitution.path_value(value, field, slashes=slashes and field.startswith("pillar["))',
        'field: str(value)',
        "test_values_in_patterns.py::test_a_value_names_no_other_secret",
    ),
    Mutation(
        'a value of pillar is no format',
        'libs/statecore/builtin/ext_pillar/vault.py',
        'yield substitution.filled(pattern, texts.__getitem__)',
        'yield substitution.filled(pattern, texts.__getitem__).format(**values)',
        "test_values_in_patterns.py::test_a_value_is_no_format_of_a_path",
    ),
    Mutation(
        "Vault is asked for no path with '..'",
        'libs/statecore/sources/vault.py',
        '        if not {"", ".", ".."}.isdisjoint(path.rstrip("/").split("/")) or not path.isprintable():',
        '        if False:',
        "test_values_in_patterns.py::test_the_client_of_vault_asks_for_no_other_path",
    ),
    Mutation(
        'a grain is no option of hiera',
        'libs/statecore/builtin/ext_pillar/hiera.py',
        '        if _NAME.fullmatch(str(name)) and',
        '        if True or',
        "test_values_in_patterns.py::test_a_grain_is_no_option_of_hiera",
    ),
    Mutation(
        'a grain is one name of a key of Consul',
        'libs/statecore/builtin/ext_pillar/consul_pillar.py',
        'else substitution.segment(value, f"the grain {name}")',
        'else str(value)',
        "test_values_in_patterns.py::test_a_grain_names_no_other_key_of_consul",
    ),
    Mutation(
        'a grain is one name of a path of a web server',
        'libs/statecore/sources/http_pillar.py',
        'return quote(segment(value, what), safe="")',
        'return quote(str(value), safe="")',
        "test_values_in_patterns.py::test_a_grain_leads_to_no_other_path_of_a_server",
    ),
    Mutation(
        'a grain chooses no web server',
        'libs/statecore/sources/http_pillar.py',
        '            if not _HOST.fullmatch(plain_text(value, what)):',
        '            if False:',
        "test_values_in_patterns.py::test_a_grain_chooses_no_other_server",
    ),
    Mutation(
        'an id is no option and no home directory',
        'libs/statecore/host/plugin_commands.py',
        'r"(?!.*:~)[\\w.@:][\\w.@:+~-]*"',
        'r"[\\w.@:+~-]*"',
        "test_values_in_patterns.py::test_an_id_is_no_option_and_no_word_of_a_shell",
    ),
    Mutation(
        'a grain leads the stack to no other directory',
        'libs/statecore/builtin/ext_pillar/stack.py',
        '            if outside and not any(_begins(item, start) for start in named):',
        '            if False:',
        "test_values_in_patterns.py::test_a_grain_chooses_no_file_of_others",
    ),
    Mutation(
        'a grain is no wildcard of the stack',
        'libs/statecore/builtin/ext_pillar/stack.py',
        '            finalize=self._printed,',
        '            finalize=None,',
        "test_values_in_patterns.py::test_a_grain_is_no_wildcard",
    ),
    Mutation(
        'a pillarenv is one name of a path of the stack',
        'libs/statecore/builtin/ext_pillar/stack.py',
        'env = segment(ctx.opts.get("pillarenv") or ctx.opts.get("saltenv") or "base", "the pillarenv")',
        'env = str(ctx.opts.get("pillarenv"))',
        "test_values_in_patterns.py::test_the_pillarenv_leads_to_no_other_list",
    ),
    Mutation(
        'a class of saltclass is a name',
        'libs/statecore/pillar/saltclass.py',
        '        if pattern.startswith("/") or ".." in pattern.split("/") or not pattern.isprintable():',
        '        if False:',
        "test_values_in_patterns.py::test_a_grain_chooses_no_class_outside",
    ),
    Mutation(
        "a minion chooses no settings of the master's returners",
        'libs/statecore/system/returner_settings.py',
        'if name not in _CHOOSES}',
        'if True}',
        "test_values_in_patterns.py::test_a_minion_chooses_no_settings_of_the_masters_returners",
    ),
    Mutation(
        'a grain leads no report elsewhere',
        'libs/statecore/builtin/returners/highstate_return.py',
        'ctx.grains, path=True)',
        'ctx.grains)',
        "test_values_in_patterns.py::test_a_grain_leads_no_report_elsewhere",
    ),
    Mutation(
        'an id leads no return elsewhere',
        'libs/statecore/builtin/returners/local_cache.py',
        'segment(ret["id"], "the minion\'s id")',
        'str(ret["id"])',
        "test_values_in_patterns.py::test_an_id_leads_no_return_elsewhere",
    ),
    Mutation(
        'a variable of an sdb URI is one part of an address',
        'libs/statecore/builtin/sdb/rest.py',
        "name: _encoded(name, value) for name",
        "name: value for name",
        "test_values_in_patterns.py::test_a_variable_of_an_sdb_uri_is_one_part",
    ),
    Mutation(
        "a return is no template of a mail",
        "libs/statecore/builtin/returners/smtp.py",
        '" ".join(" ".join(subject).split())',
        'str(_rendered(ctx, " ".join(subject), settings, ret))',
        "test_values_in_patterns.py::test_a_return_is_no_template_of_a_mail",
    ),
    Mutation(
        "only a newline ends a line of a program's output or of a file",
        "libs/statecore/model/text_lines.py",
        '    parts = text.split("\\n")',
        '    parts = "\\n".join([*text.splitlines(), ""]).split("\\n")',
        "test_lines.py::test_a_name_is_no_line",
    ),
    Mutation(
        "a branch is one line of git's output",
        "libs/statecore/sources/gitrepos/mirror.py",
        'lines_of(output.decode("utf-8", "surrogateescape"))',
        'output.decode("utf-8", "surrogateescape").splitlines()',
        "test_lines.py::test_a_branch_stops_no_mirror",
    ),
    Mutation(
        "a user's full name is one field of a line",
        "libs/statecore/host/host.py",
        "lines_of(text_of(real))",
        'lines_of(real.read_text("utf-8", "replace"))',
        "test_lines.py::test_a_full_name_makes_no_user",
    ),
    Mutation(
        "keyword arguments stand behind all others",
        "services/saltern/kit/command/arguments.py",
        'arguments.append({"__kwarg__": True, **keyword})',
        'arguments.insert(0, {"__kwarg__": True, **keyword})',
        "test_arguments.py::test_an_operator_runs_nothing_but_what_the_access_list_allows",
    ),
    Mutation(
        "a private key is for its owner",
        "libs/statecore/builtin/modules/x509/creation.py",
        "mode=0o600",
        "mode=0o644",
        "test_public_cves.py::test_cve_2020_17490_a_private_key_is_for_its_owner",
    ),
    Mutation(
        "templates run in a sandbox",
        "libs/statecore/render/jinja/closed.py",
        "        kind = type(obj)\n        if kind in _OPEN:",
        "        return getattr(obj, name, _ABSENT)\n        kind = type(obj)\n        if kind in _OPEN:",
        "test_public_cves.py::test_cve_2021_25283_a_template_stays_in_its_sandbox",
    ),
    Mutation(
        "templates read attributes of listed types alone",
        "libs/statecore/render/jinja/closed.py",
        "    if _DATA.isdisjoint(kind.__mro__):\n        return _REFUSED",
        "    if _DATA.isdisjoint(kind.__mro__):\n        return getattr(obj, name, _ABSENT)",
        "test_template_objects.py::test_an_object_that_a_function_returns_shows_nothing",
    ),
    Mutation(
        "a subclass of data shows the methods of data alone",
        "libs/statecore/render/jinja/closed.py",
        "if name[:1] == \"_\" or not (base in _DATA or type(found) is _FIELD):",
        "if name[:1] == \"_\":",
        "test_template_objects.py::test_an_object_that_a_function_returns_shows_nothing",
    ),
    Mutation(
        "templates read items of listed types alone",
        "libs/statecore/render/jinja/closed.py",
        "        if type(obj) in _INDEXED or _items_of_base(obj):\n            try:\n                return obj[argument]",
        "        if True:\n            try:\n                return obj[argument]",
        "test_template_objects.py::test_an_object_that_a_function_returns_shows_nothing",
    ),
    Mutation(
        "templates call listed types alone",
        "libs/statecore/render/jinja/closed.py",
        "        return (isinstance(obj, type) and obj in _CLASSES) or isinstance(obj, Undefined)",
        "        return True",
        "test_template_objects.py::test_an_object_that_a_function_returns_shows_nothing",
    ),
    Mutation(
        "method_call asks the environment",
        "libs/statecore/render/filters/calls.py",
        "found = environment.method(obj, f_name)",
        "found = getattr(obj, f_name, None)",
        "test_templates.py::test_a_template_reaches_no_more_functions_than_the_minion_allows",
    ),
    Mutation(
        "the limits of filters are those of the options",
        "libs/statecore/render/jinja/engine.py",
        "self._limits = Limits.of(opts)",
        "self._limits = Limits()",
        "test_templates.py::test_a_template_that_changes_opts_sees_no_file_of_the_machine",
    ),
    Mutation(
        "templates get copies of options, grains and pillar",
        "libs/statecore/render/jinja/variables.py",
        "return plain_data(value) if self._plain else data_copy(value)",
        "return value",
        "test_templates.py::test_a_template_changes_nothing_but_its_own_variables",
    ),
    Mutation(
        "a template gets no table of functions",
        "libs/statecore/render/jinja/variables.py",
        "    if callable(value):\n        raise NoData",
        "    if False:\n        raise NoData",
        "test_template_objects.py::test_an_object_that_a_function_returns_shows_nothing",
    ),
    Mutation(
        "json_query reads data alone",
        "libs/statecore/render/filters/lists.py",
        "jmespath.search(expr, plain_data(data))",
        "jmespath.search(expr, data)",
        "test_template_objects.py::test_an_object_that_a_function_returns_shows_nothing",
    ),
    Mutation(
        "templates get copies of what functions return",
        "libs/statecore/render/jinja/functions.py",
        "        return data_copy(result)",
        "        return result",
        "test_templates.py::test_a_template_changes_nothing_but_its_own_variables",
    ),
    Mutation(
        "an id can be shown",
        "libs/saltwire/ids.py",
        ' or not value.isprintable():',
        ":",
        "test_shown_texts.py::test_no_minion_has_such_an_id",
    ),
    Mutation(
        "git gets no option from a value",
        "libs/statecore/system/git_commands.py",
        '    if str(value).startswith("-") and value != "-":',
        "    if False:",
        "test_git_options.py::test_git_gets_no_option_from_a_value",
    ),
    Mutation(
        "a download is kept in the cache",
        "libs/statecore/sources/downloads.py",
        '    if parts.hostname in (".", "..") or saltenv in (".", ".."):',
        "    if False:",
        "test_public_cves.py::test_cve_2021_21996_a_download_is_kept_in_the_cache",
    ),
    Mutation(
        "a request that ended workers is given up",
        "services/saltern/reqserver/dispatch.py",
        "MAX_RISKY_ATTEMPTS = 1",
        "MAX_RISKY_ATTEMPTS = 2",
        "test_request_bounds.py::test_a_request_that_ends_workers_is_given_up",
    ),
    Mutation(
        "an archive is written by descriptors of its target",
        _ARCHIVES,
        "with confined(target) as inside:",
        "with contextlib.nullcontext(target) as inside:",
        "test_archives.py::test_no_member_leaves_the_target",
        # Without `..` behind a name a link is harmless, too.
        (("text = _normal(leads)", "text = leads"),),
    ),
    Mutation(
        "names of an archive are read before anything is removed",
        _ARCHIVES,
        'return normal == ".." or normal.startswith("../")',
        "return False",
        "test_archives.py::test_no_name_has_anything_removed_outside",
    ),
    Mutation(
        "minions' expressions run in RE2",
        "services/saltern/mworker/linear_regex.py",
        'return _Linear(engine.compile(_ESCAPE.sub(lambda pair: r"\\z" if pair[1] == "Z" else pair[0], pattern), options))',
        "return re.compile(pattern)",
        "test_targets_of_minions.py::test_expressions_that_need_backtracking_are_refused",
    ),
    Mutation(
        "one address has half of the processes that are left",
        "services/saltern/mworker/processes.py",
        "    if own and own >= min(MAX_PER_MINION, free / 2):",
        "    if own and own >= MAX_PER_MINION:",
        "test_sign_in_processes.py::test_the_next_one_finds_a_process",
    ),
    Mutation(
        "sign-ins and minions have a part of the processes",
        "services/saltern/mworker/processes.py",
        "    most, kind = (MAX_LOGINS,",
        "    most, kind = (MAX_RUNNERS, '') if login else (MAX_RUNNERS, '')\n    _, _ = (MAX_LOGINS,",
        "test_sign_in_processes.py::test_operators_find_a_process_whatever_the_others_do",
    ),
    Mutation(
        "an override of a minion is merged last",
        "services/saltern/mworker/commands/pillar.py",
        "seen = override is not None and is_published(context, minion_id, override)",
        "seen = override is not None",
        "test_pillar_overrides.py::test_a_minions_own_override_chooses_nothing",
    ),
    Mutation(
        "an override counts for the minion to which it was published",
        "services/saltern/mworker/pillar_overrides.py",
        "return jobs.waits_for(jid, minion_id) and jobs.check_load(jid)",
        "return jobs.check_load(jid)",
        "test_pillar_overrides.py::test_another_job_is_no_excuse",
    ),
    Mutation(
        "an override of a job that a minion published does not count",
        "services/saltern/mworker/pillar_overrides.py",
        'if "id" in job.load or not isinstance(arg, list):',
        "if not isinstance(arg, list):",
        "test_pillar_overrides.py::test_another_job_is_no_excuse",
    ),
    Mutation(
        "an override counts only in a load with a true code",
        "services/saltern/mworker/pillar_overrides.py",
        "return jobs.waits_for(jid, minion_id) and jobs.check_load(jid)",
        "return jobs.waits_for(jid, minion_id)",
        "test_pillar_overrides.py::test_another_job_is_no_excuse",
    ),
    Mutation(
        "a return is decompressed up to a bound",
        "libs/masterstore/large_returns.py",
        "        plain = inflate.decompress(data, most)",
        "        plain = inflate.decompress(data)",
        "test_large_returns.py::test_a_small_value_takes_little_memory",
    ),
    Mutation(
        "values of a return are counted before they are built",
        "libs/masterstore/large_returns.py",
        "    if memory > MOST_MEMORY:",
        "    if False:",
        "test_large_returns.py::test_a_small_value_takes_little_memory",
    ),
    Mutation(
        "returns of one answer have a bound together",
        "libs/masterstore/large_returns.py",
        "            if left < 0:",
        "            if False:",
        "test_large_returns.py::test_many_values_of_one_job_take_no_more_together",
    ),
    Mutation(
        "empty lines and empty grains accept no key",
        "services/saltern/mworker/sign_in_lists.py",
        '        if written and not written.startswith("#"):',
        '        if not written.startswith("#"):',
        "test_sign_in_lists.py::test_no_grain_accepts_a_stranger",
        also=((' if value else ():', ' if file.name in grains else ():'),),
    ),
    Mutation(
        "leftovers of editors are no lists",
        "services/saltern/mworker/sign_in_lists.py",
        " if file.name in grains and is_list(file.name) else",
        " if file.name in grains else",
        "test_sign_in_lists.py::test_no_grain_accepts_a_stranger",
    ),
    Mutation(
        "a list that others may write is not used",
        "services/saltern/mworker/sign_in_lists.py",
        "    if found.st_mode & stat.S_IWOTH:",
        "    if False:",
        "test_sign_in_lists.py::test_no_file_accepts_a_stranger",
    ),
    Mutation(
        "lines of autosign_file run in RE2",
        "services/saltern/mworker/sign_in_lists.py",
        "return expression(line).fullmatch(minion_id) is not None",
        "return re.fullmatch(line, minion_id) is not None",
        "test_sign_in_lists.py::test_no_id_makes_a_line_backtrack",
    ),
    Mutation(
        "pillar is compared exactly for minions",
        "services/saltern/mworker/targets.py",
        "_PEERS_READING = Reading(linear_regex, literal_pillar=True)",
        "_PEERS_READING = Reading(linear_regex)",
        "test_targets_of_minions.py::test_pillar_is_not_read_piece_by_piece",
    ),
    Mutation(
        "incomplete requests have a bound",
        _MINION_PORT,
        "while self._held > self._max_held and len(self._holding) > 1:",
        "while False:",
        "test_connections.py::test_half_requests_on_many_connections_are_bounded",
    ),
    Mutation(
        "connections of one address have a rate",
        _MINION_PORT,
        "if not self._connections.admit(network, now, 1.0):",
        "if False:",
        "test_floods.py::test_a_flood_of_one_address_is_bounded",
    ),
    Mutation(
        "requests of one address have a rate",
        _MINION_PORT,
        "if self._requests.wait(peer.network, now) > 0:",
        "if False:",
        "test_floods.py::test_a_flood_of_one_address_is_bounded",
    ),
    Mutation(
        "peers' keys have a size",
        _KEYS,
        "if not MIN_BITS <= key.key_size <= MAX_BITS:",
        "if False:",
        "test_peer_keys.py::test_a_key_that_is_weak_or_slow_is_refused",
    ),
    Mutation(
        "peers' keys have a small exponent",
        _KEYS,
        "if not _MIN_EXPONENT <= exponent <= _MAX_EXPONENT or not exponent % 2:",
        "if False:",
        "test_peer_keys.py::test_a_key_that_is_weak_or_slow_is_refused",
    ),
    Mutation(
        "arguments are hidden by their names",
        _REDACTION,
        "return {key: _hide(value) if is_secret_name(key) else _value(value, depth - 1) for key, value in one.items()}",
        "return {key: _value(value, depth - 1) for key, value in one.items()}",
        "test_redaction.py::test_arguments_are_shown_without_secrets",
    ),
    Mutation(
        "arguments are hidden by their positions",
        _REDACTION,
        'positions = SECRET_POSITIONS.get(fun.removeprefix("runner."), ()) if isinstance(fun, str) else ()',
        "positions: tuple[int, ...] = ()",
        "test_redaction.py::test_arguments_are_shown_without_secrets",
    ),
    Mutation(
        "a hidden state's return is hidden",
        _REDACTION,
        '        return {**returned, **{key: redacted(returned[key]) for key in _NO_LOG_KEYS if key in returned}}',
        "        return returned",
        "test_redaction.py::test_a_state_run_shows_no_secret",
    ),
    Mutation(
        "a hidden state's name is not logged",
        _REDACTION,
        'return MASK if is_hidden(low) else low["name"]',
        'return low["name"]',
        "test_redaction.py::test_a_state_run_shows_no_secret",
    ),
    Mutation(
        "the master shows a job without secrets",
        "services/saltern/mworker/commands/control.py",
        'shown = {"arg": shown_arguments(fun, arg)}',
        'shown = {"arg": arg}',
        "test_redaction.py::test_the_master_shows_no_secret_of_a_job",
    ),
    Mutation(
        "seals cover the entries of the audit record",
        _AUDIT,
        "if len(covered) != seal.count or digest_of(b\"\".join(map(code_line, covered))) != seal.digest:",
        "if False:",
        "test_audit.py::test_verify_finds_a_changed_record",
    ),
    Mutation(
        "workers count their entries",
        _AUDIT,
        "        if no <= before:",
        "        if False:",
        "test_audit.py::test_verify_finds_a_changed_record",
    ),
    Mutation(
        "without an entry in the audit record no job is published",
        "libs/masterstore/job_scripts.py",
        "if type(entry) == 'table' and entry.err then return redis.error_reply",
        "if false then return redis.error_reply",
        "test_audit.py::test_no_entry_no_job",
    ),
    Mutation(
        "without an entry in the audit record no runner or wheel function is called",
        "services/saltern/mworker/audit_log.py",
        "        except StoreUnavailable as error:\n            self.log.error(\"audit: recorded when",
        "        except StoreError as error:\n            self.log.error(\"audit: recorded when",
        "test_audit.py::test_no_entry_no_job",
    ),
    Mutation(
        "the time of an entry fits its stream id",
        _AUDIT,
        "    if abs(number_of(entry.stream_id)[0] - place.at) > _CLOCKS_MS:",
        "    if False:",
        "test_audit.py::test_verify_finds_a_changed_record",
    ),
    Mutation(
        "the time of an entry lies between the seals around it",
        _AUDIT,
        "    if place.at < sealed_before - _CLOCKS_MS or",
        "    if False and",
        "test_audit.py::test_verify_finds_a_changed_record",
    ),
    Mutation(
        "seals name the last count of each worker",
        _AUDIT,
        "    if fault := counts.fault_of_names(seal):",
        "    if fault := \"\":",
        "test_audit.py::test_verify_finds_a_changed_record",
    ),
    Mutation(
        "a gap that a worker reported is a fault",
        _AUDIT,
        "        if not missing:",
        "        if missing <= place.unsure:",
        "test_audit.py::test_verify_finds_a_changed_record",
    ),
    Mutation(
        "the log hides secret parts of the matched route",
        "services/saltern/api/guard.py",
        "MASK if part in secret or (len(part) > _LONGEST_SHOWN and part not in named) else part",
        "part",
        "test_logged_secrets.py::test_no_token_of_a_path_is_logged",
    ),
    Mutation(
        "libraries log from the level warning on",
        "services/saltern/kit/process/logs.py",
        "        if record.levelno < logging.WARNING and not asked:",
        "        if False:",
        "test_logged_secrets.py::test_no_library_logs_a_token",
    ),
    Mutation(
        "the log hides tokens in lines of libraries",
        "services/saltern/kit/process/logs.py",
        "_LIKE_A_TOKEN.sub(MASK, record.getMessage())",
        "record.getMessage()",
        "test_logged_secrets.py::test_no_library_logs_a_token",
    ),
    Mutation(
        "the console quotes each word of a command",
        "services/saltern/api/page/shell_words.js",
        "...words.map(quoted)]",
        "...words]",
        "test_shell_words.py::test_a_copied_command_is_one_command",
    ),
    Mutation(
        "the console lets no word become an option",
        "services/saltern/api/page/shell_words.js",
        'words.some((word) => word.startsWith("-")) ? ["--"] : []',
        "[]",
        "test_shell_words.py::test_a_copied_command_is_one_command",
    ),
    Mutation(
        "a link publishes nothing",
        "services/saltern/api/guard.py",
        "    if publishes and followed and",
        "    if False and",
        "test_api.py::test_a_link_publishes_nothing",
    ),
    Mutation(
        "only named fronts say which client they serve",
        "services/saltern/api/main.py",
        "forwarded_allow_ips=list(settings.trusted_proxies)",
        'forwarded_allow_ips=["127.0.0.1", "::1", "10.0.0.0/8"]',
        "test_api.py::test_an_address_is_not_taken_from_a_stranger",
    ),
    Mutation(
        "the password of an unknown user is checked, too",
        "services/saltern/mworker/eauth/password_files.py",
        "    return known[int.from_bytes",
        "    return None and known[int.from_bytes",
        "test_login_times.py::test_an_unknown_user_costs_the_same_work",
    ),
    Mutation(
        "the directory is asked about unknown users, too",
        "services/saltern/mworker/eauth/directory.py",
        "            with contextlib.suppress(EauthFault):",
        "            if False:",
        "test_login_times.py::test_a_directory_is_asked_about_an_unknown_user_as_often",
    ),
    Mutation(
        "the engine webhook counts the bytes of bodies",
        _WEBHOOK,
        "if not self.server.bodies.take(address, len(part)):",
        "if False:",
        "test_webhook_engine.py::test_strangers_fill_no_memory",
    ),
    Mutation(
        "the engine webhook counts connections",
        _WEBHOOK,
        "if not self.connections.take(client_address[0], 1):",
        "if False:",
        "test_webhook_engine.py::test_strangers_start_no_more_threads_than_the_limit",
    ),
    Mutation(
        "a request to the engine webhook has a deadline",
        _WEBHOOK,
        "            if until < now:",
        "            if False:",
        "test_webhook_engine.py::test_a_request_that_does_not_arrive_ends",
    ),
    Mutation(
        "answers of a region are held against their types",
        "services/saltern/kit/links/control.py",
        '    if fault := answer_fault(cmd, reply["ok"]):',
        '    if fault := "":',
        "test_region_answers.py::test_a_malformed_answer_ends_no_other_region",
    ),
    Mutation(
        "a region answers for minions that it named",
        "services/saltern/cli/region_merge.py",
        "        if region not in self._named.get(minion, ()):\n            return ReturnKind.UNNAMED",
        "        if False:\n            return ReturnKind.UNNAMED",
        "test_region_answers.py::test_no_region_answers_for_minions_that_it_did_not_name",
    ),
    Mutation(
        "refusals do not fill the audit record",
        "services/saltern/mworker/audit_log.py",
        "if count <= _REFUSALS:",
        "if True:",
        "test_audit.py::test_refusals_do_not_push_everything_else_out",
    ),
    Mutation(
        "an id that begins with a colon has no key of its functions",
        "libs/masterstore/keys.py",
        '_OTHERS = ("salt:", "load:", "ret:", ":")',
        '_OTHERS = ("salt:", "load:", "ret:")',
        "test_key_names.py::test_two_things_do_not_share_a_key",
    ),
    Mutation(
        "a minion's part of a key ends where the next part begins",
        "libs/masterstore/keys.py",
        'return minion.replace("%", "%25").replace(":", "%3A")',
        "return minion",
        "test_key_names.py::test_two_things_do_not_share_a_key",
    ),
    Mutation(
        "settings of an editor stay in its folder",
        "libs/statecore/lsp/settings.py",
        "    except OSError:\n        # Outside, a loop of links, or behind a closed directory.\n        return False",
        "    except OSError:\n        return True",
        "test_foreign_trees.py::test_a_setting_of_the_tree_names_nothing_outside",
    ),
    Mutation(
        "an editor finds no tree behind a link",
        "libs/statecore/lsp/settings.py",
        "    return not bound or _leads_into(str(path), bound)",
        "    return True",
        "test_foreign_trees.py::test_no_tree_is_found_behind_a_link",
    ),
    Mutation(
        "links lead out of no untrusted state tree",
        "libs/statecore/lsp/rendering.py",
        "LocalFiles(roots, follow_links=self.settings.trust)",
        "LocalFiles(roots)",
        "test_foreign_trees.py::test_no_link_of_a_tree_leads_out",
    ),
    Mutation(
        "links lead out of no untrusted pillar tree",
        "libs/statecore/lsp/rendering.py",
        '"fileserver_followsymlinks": self.settings.trust',
        '"fileserver_followsymlinks": True',
        "test_foreign_trees.py::test_no_link_of_a_tree_leads_out",
    ),
    Mutation(
        "links lead the index out of no untrusted tree",
        "libs/statecore/lsp/index.py",
        "        if not self.roots.follow_links:",
        "        if False:",
        "test_foreign_trees.py::test_no_link_leads_the_index_out",
    ),
    Mutation(
        "a path that became a link is looked at again",
        _RENDERER,
        "        if outside := self._settings.outside():",
        "        if outside := list[str]():",
        "test_foreign_trees.py::test_a_path_that_became_a_link_is_not_read",
    ),
    Mutation(
        "the renderer of an untrusted tree is confined",
        _RENDERER,
        "    return confine(Rights(reads, str(session.scratch), memory=_ADDRESSES, cpu=CPU_SECONDS))",
        "    return Confinement()",
        "test_broken_sandbox.py::test_python_in_the_renderer_reaches_nothing",
    ),
    Mutation(
        "Landlock says which files are read",
        _CONFINEMENT,
        '            self._call(_RESTRICT_SELF, "landlock", ctypes.c_int(rules), ctypes.c_uint(0))',
        "            pass",
        "test_broken_sandbox.py::test_each_wall_holds_without_the_others",
    ),
    Mutation(
        "unknown system calls are refused",
        _CONFINEMENT,
        "    steps.append(_REFUSE)",
        "    steps += _PASS",
        "test_broken_sandbox.py::test_each_wall_holds_without_the_others",
    ),
    Mutation(
        "the renderer leaves the network",
        _CONFINEMENT,
        "        if self._libc.unshare(kinds) == 0:",
        "        if True:",
        "test_broken_sandbox.py::test_each_wall_holds_without_the_others",
    ),
    Mutation(
        "the renderer has limits",
        _CONFINEMENT,
        "            resource.setrlimit(limit, (least, least))",
        "            pass",
        "test_broken_sandbox.py::test_python_in_the_renderer_reaches_nothing",
    ),
    Mutation(
        "the renderer keeps no capability",
        _CONFINEMENT,
        "    kernel.drop_capabilities()",
        "    pass",
        "test_broken_sandbox.py::test_no_capability_is_kept",
    ),
    Mutation(
        "the renderer has no environment",
        _RENDERER,
        "env=None if self._settings.trust else {},",
        "env=None,",
        "test_broken_sandbox.py::test_python_in_the_renderer_reaches_nothing",
    ),
    Mutation(
        "check --untrusted runs no code of the tree",
        "libs/statecore/analysis/commands/check.py",
        "        if given.untrusted:\n            runs[grains]",
        "        if False:\n            runs[grains]",
        "test_check_untrusted.py::test_a_checked_tree_runs_nothing",
    ),
    Mutation(
        "findings show no control character",
        "libs/statecore/analysis/check_text.py",
        'one if one.isprintable() or one == "\\t" else ascii(one)[1:-1]',
        "one",
        "test_check_untrusted.py::test_findings_obey_nothing",
    ),
    Mutation(
        "a finding of the renderer is looked at",
        "libs/statecore/analysis/finding.py",
        'if not isinstance(data, dict) or data.get("rule") not in RULES:',
        "if False:",
        "test_check_untrusted.py::test_what_is_no_finding_is_refused",
    ),
    Mutation(
        "a path in a template has few steps",
        "libs/statecore/lsp/facts.py",
        "{{1,{_DEEPEST}}}",
        "+",
        "test_foreign_trees.py::test_no_file_fills_the_memory",
    ),
    Mutation(
        "fmt follows no link of a tree",
        "libs/statecore/analysis/commands/fmt.py",
        " and not each.is_symlink())",
        ")",
        "test_check_untrusted.py::test_a_formatted_tree_changes_and_shows_nothing_outside",
    ),
    Mutation(
        "a path of pillar keys is short",
        "libs/statecore/lsp/facts.py",
        "if len(path) > _LONGEST_PATH:",
        "if False:",
        "test_foreign_trees.py::test_no_key_of_a_pillar_file_fills_the_memory",
    ),
    Mutation(
        "a module that no parser takes ends nothing",
        "libs/statecore/lsp/catalogue.py",
        "    except (SyntaxError, ValueError, RecursionError, MemoryError):",
        "    except SyntaxError:",
        "test_foreign_trees.py::test_a_module_that_python_cannot_parse_is_none",
    ),
    Mutation(
        "an answer belongs to its question",
        _RENDERER,
        """                or answer.get("id") != message["id"]
""",
        "",
        "test_broken_sandbox.py::test_the_server_does_not_wait_for_a_lying_renderer",
    ),
    Mutation(
        "an answer is bounded",
        _RENDERER,
        "            if len(received) > _LONGEST_ANSWER:",
        "            if False:",
        "test_broken_sandbox.py::test_the_server_does_not_wait_for_a_lying_renderer",
    ),
    Mutation(
        "no number is read in base 60",
        _YAML_LOADERS,
        "(tag, _NUMBERS.get(tag, pattern)) for tag, pattern in rows",
        "(tag, pattern) for tag, pattern in rows",
        "test_yaml_stalls.py::test_no_number_is_read_in_base_60[1:59-YAML]",
        ((_BASE_60_BY_TAG, "        return super().construct_yaml_int(node)\n"),),
    ),
    Mutation(
        "a tag reads no number in base 60",
        _YAML_LOADERS,
        _BASE_60_BY_TAG,
        "        return super().construct_yaml_int(node)\n",
        "test_yaml_stalls.py::test_no_number_is_read_in_base_60[1:59-YAML]",
    ),
    Mutation(
        "keys of one hash are counted",
        _YAML_BOUNDS,
        "    if seen[number] > _EQUAL_HASHES:",
        "    if False:",
        "test_yaml_stalls.py::test_a_loader_of_a_user_has_the_bounds[integer keys of one hash]",
    ),
    Mutation(
        "digits of a number are bounded",
        _YAML_BOUNDS,
        "    if len(text) > most:",
        "    if False:",
        "test_yaml_stalls.py::test_a_number_that_cannot_be_written_stays_text",
    ),
    Mutation(
        "nested levels are counted before a document is built",
        _YAML_BOUNDS,
        "                if len(open_nodes) > bounds.depth:",
        "                if False:",
        "test_yaml_stalls.py::test_a_loader_of_a_user_has_the_bounds[nested lists]",
    ),
    Mutation(
        "values of aliases are counted",
        _YAML_BOUNDS,
        "            if repeated > bounds.aliased:",
        "            if False:",
        "test_yaml_stalls.py::test_users_modules_get_the_same_bounds[aliases of aliases-its load]",
    ),
    Mutation(
        "%TAG lines are counted",
        _YAML_BOUNDS,
        "    if \"%TAG\" in text and len(_TAG_LINE.findall(text)) > _TAG_LINES:",
        "    if False:",
        "test_yaml_stalls.py::test_users_modules_get_the_same_bounds[tag directives-its load]",
    ),
    Mutation(
        "merged entries are counted",
        _YAML_LOADERS,
        "                if self._merged > self.bounds.aliased:",
        "                if False:",
        "test_yaml_stalls.py::test_a_document_takes_no_longer_than_a_plain_one[merge keys inside each other-SLS]",
    ),
    Mutation(
        "a minion's right to a function comes before its arguments",
        "services/saltern/mworker/commands/peers.py",
        "[name for name in _functions(load) if not named(sender.rights, name)]",
        "[]",
        "test_arguments_of_minions.py::test_without_the_functions_right_no_argument_is_parsed",
    ),
    Mutation(
        "a long list as text is not parsed",
        "services/saltern/kit/command/arguments.py",
        "    if len(text) > MOST_SENT and text.lstrip(\" \").startswith((\"[\", \"{\")):",
        "    if False:",
        "test_yaml_stalls.py::test_a_long_argument_of_a_request_is_not_parsed",
    ),
    Mutation(
        "the lists of a request are bounded together",
        "services/saltern/kit/command/arguments.py",
        "    if together > MOST_TOGETHER:",
        "    if False:",
        "test_arguments_of_minions.py::test_no_argument_of_a_minion_keeps_a_worker_busy",
    ),
    Mutation(
        "a login is short",
        "services/saltern/api/server.py",
        "        if most and len(body) > most:",
        "        if False:",
        "test_broken_requests.py::test_a_login_is_short",
    ),
    Mutation(
        "long YAML is parsed for sessions alone",
        "services/saltern/api/bodies.py",
        "    if not known and reader is _yaml and len(body) > _STRANGERS_YAML:",
        "    if False:",
        "test_broken_requests.py::test_long_yaml_is_parsed_for_sessions_alone",
    ),
    Mutation(
        "Transfer-Encoding beside Content-Length closes the connection",
        "services/saltern/api/guard.py",
        "_bad_framing(scope) or self._refused(scope)",
        "self._refused(scope)",
        "test_broken_requests.py::test_an_ambiguous_request_closes_the_connection",
    ),
    Mutation(
        "a body that ends early leaves no stack trace",
        "services/saltern/api/answers.py",
        "    if isinstance(error, ClientDisconnect):",
        "    if False:",
        "test_broken_requests.py::test_a_broken_request_leaves_no_stack_trace",
    ),
    Mutation(
        "NaN and infinity are no JSON",
        "services/saltern/api/bodies.py",
        "json.loads(text, parse_constant=_no_number, parse_float=_finite)",
        "json.loads(text)",
        "test_broken_requests.py::test_an_odd_body_is_answered_with_400",
    ),
    Mutation(
        "an infinite share is no batch",
        "services/saltern/kit/jobs/batch.py",
        "        if not math.isfinite(share):\n            raise ValueError(text)\n",
        "",
        "test_broken_requests.py::test_an_odd_batch_is_no_size",
    ),
)  # fmt: skip


def result_of(mutation: Mutation) -> str:
    """Run the attack on a copy of the source without the defence. Return "succeeds", or the reason why it does not as text."""
    with tempfile.TemporaryDirectory(prefix="saltern-mutation-") as directory:
        copy = Path(directory)
        for name in ("libs", "services"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        source = copy / mutation.file
        text = source.read_text("utf-8")
        for old, new in ((mutation.old, mutation.new), *mutation.also):
            if text.count(old) != 1:
                return f"{mutation.file} has the text {old!r} {text.count(old)} times"
            text = text.replace(old, new)
        source.write_text(text, "utf-8")
        paths = os.pathsep.join([str(copy / "libs"), str(copy / "services"), str(ROOT)])
        file, _, name = mutation.attack.partition("::")
        options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, f"{Path(__file__).parent / file}::{name}"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    if done.returncode == _FAILED and failed:
        return "succeeds"
    return "is refused" if done.returncode == 0 else f"cannot be judged: {done.stdout[-400:]}"


def main(words: Sequence[str]) -> int:
    """Try all mutations, or those whose defence has one of the words; print a line for each. Return the exit code."""
    chosen = [each for each in MUTATIONS if not words or any(word in each.defence for word in words)]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(result_of, chosen))
    for mutation, result in zip(chosen, results, strict=True):
        print(f"without '{mutation.defence}': {mutation.attack} {result}")
    succeeded = results.count("succeeds")
    print(f"{succeeded} attacks succeed of {len(chosen)} defences that were taken out")
    return int(succeeded != len(chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
