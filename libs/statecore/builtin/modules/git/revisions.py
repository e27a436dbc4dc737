"""Functions of ``git`` that return revisions, names of revisions, and differences."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of
from statecore.system.git_commands import Words, absolute, ended, operand, options, parts_of, place, run


def revision(
    ctx: Context,
    cwd: str,
    rev: str = "HEAD",
    short: bool = False,
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Return the SHA1 of a revision of a git repository; with ``short`` its abbreviated form.

    CLI Example:

        salt '*' git.revision /srv/app v1
    """
    words = ["rev-parse", *(["--short"] if short else []), *operand("rev", rev)]
    return run(ctx, place(ctx, cwd, user), words, user=user)


def rev_parse(
    ctx: Context,
    cwd: str,
    rev: str | None = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Return the output of ``git rev-parse`` with the options ``opts``, such as a SHA1.

    CLI Example:

        salt '*' git.rev_parse /srv/app HEAD opts=--verify
    """
    words = ["rev-parse", *options(opts), *operand("rev", rev)]
    return run(ctx, place(ctx, cwd, user), words, git_opts=git_opts, user=user)


def describe(
    ctx: Context,
    cwd: str,
    rev: str = "HEAD",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Return the name of a git revision by the nearest tag before it, such as v1.2 or v1.2-3-gabc1234; its
    abbreviated SHA1 if there is no tag.

    CLI Example:

        salt '*' git.describe /srv/app
    """
    return run(ctx, place(ctx, cwd, user), ["describe", "--always", *operand("rev", rev)], user=user)


def diff(
    ctx: Context,
    cwd: str,
    item1: str | None = None,
    item2: str | None = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    no_index: bool = False,
    cached: bool = False,
    paths: object = None,
    output_encoding: str | None = None,
) -> str:
    """Return the difference of the working tree from the index, or of the revisions ``item1`` and ``item2``, as text.

    cached
        True: of the index from ``item1`` (HEAD)
    no_index
        True: of the two files in ``paths``, which need not be in a repository
    paths
        list of paths, or text with commas: only the difference of these

    CLI Example:

        salt '*' git.diff /srv/app HEAD~1 HEAD paths=conf
    """
    if no_index and cached:
        raise CommandError("The 'no_index' and 'cached' options cannot be used together")
    items = [] if no_index else [item1] if cached else [item1, item2]
    words = ["diff", *options(opts), *(["--no-index"] if no_index else ["--cached"] if cached else [])]
    words += [name for each in items for name in operand("item", each)]
    words += ["--", *parts_of(paths)] if paths else []
    if no_index:
        # The exit code is 1 if the files differ.
        return ended(ctx, absolute(cwd), [*options(git_opts), *words], user=user, merged=True).stdout.rstrip()
    return run(ctx, absolute(cwd), words, git_opts=git_opts, user=user, merged=True)


def merge_base(
    ctx: Context,
    cwd: str,
    refs: object = None,
    octopus: bool = False,
    is_ancestor: bool = False,
    independent: bool = False,
    fork_point: str | None = None,
    opts: Words = "",
    git_opts: Words = "",
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
    all: bool = False,
) -> str | bool | list[str]:
    """Return the SHA1 of the best common ancestor of git revisions, or another value with the arguments below. Raise
    CommandError if there is none.

    refs
        list of revisions, or text with commas
    all
        True: return a list of all best common ancestors
    octopus
        True: the ancestor of all of them
    is_ancestor
        True: return whether the first of two revisions is an ancestor of the second
    independent
        True: the revisions that no other one contains
    fork_point
        the revision (default HEAD) forked from this branch, by its reflog

    CLI Example:

        salt '*' git.merge_base /srv/app refs=main,dev
    """
    if all and (independent or is_ancestor or fork_point):
        raise InvocationError("The 'all' argument is not compatible with 'independent', 'is_ancestor', or 'fork_point'")
    named = [each.strip() for each in parts_of(refs)] if refs is not None else []
    if sum(map(bool, (octopus, independent, is_ancestor, fork_point))) > 1:
        raise InvocationError("Only one of 'octopus', 'independent', 'is_ancestor', and 'fork_point' is permitted")
    if is_ancestor and len(named) != 2:
        raise InvocationError("Two refs/commits are required if 'is_ancestor' is True")
    if fork_point and len(named) > 1:
        raise InvocationError("At most one ref/commit can be passed if 'fork_point' is specified")
    if fork_point:
        named = named or ["HEAD"]
    flags = {"--all": all, "--octopus": octopus, "--is-ancestor": is_ancestor, "--independent": independent}
    words = ["merge-base", *options(opts), *(flag for flag, wanted in flags.items() if wanted)]
    words += ["--fork-point", *operand("fork_point", fork_point)] if fork_point else []
    words += [name for each in named for name in operand("ref", each)]
    directory = place(ctx, cwd, user)
    if is_ancestor:
        return ended(ctx, directory, [*options(git_opts), *words], user=user).retcode == 0
    found = lines_of(run(ctx, directory, words, git_opts=git_opts, user=user))
    return found if all else found[0] if found else ""


def merge_tree(
    ctx: Context,
    cwd: str,
    ref1: str,
    ref2: str,
    base: str | None = None,
    user: str | None = None,
    password: str | None = None,
    ignore_retcode: bool = False,
    output_encoding: str | None = None,
) -> str:
    """Return the changes that a merge of two git revisions would make, as the output of ``git merge-tree``; nothing
    is changed. Raise CommandError if they have no common ancestor.

    base
        common ancestor; default: the best one

    CLI Example:

        salt '*' git.merge_tree /srv/app HEAD dev
    """
    if base is None:
        try:
            base = str(merge_base(ctx, cwd, refs=[ref1, ref2], user=user))
        except (CommandError, InvocationError):
            raise CommandError(f"Unable to determine merge base for {ref1} and {ref2}") from None
    words = ["merge-tree", *operand("base", base), *operand("ref1", ref1), *operand("ref2", ref2)]
    return run(ctx, place(ctx, cwd, user), words, user=user)
