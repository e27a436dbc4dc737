"""Hosts of options, and names that have one address, then several, then one again."""

from __future__ import annotations

import pytest

from saltern.kit.links.addresses import Addresses, hosts_of, is_address, other_than


@pytest.mark.parametrize(
    ("option", "wanted"),
    [
        ("reqserver", ("reqserver",)),
        ("10.0.0.1, 10.0.0.2,", ("10.0.0.1", "10.0.0.2")),
        (["b", " a ", "b"], ("b", "a")),
        ([], ()),
    ],
)
def test_hosts_of_an_option(option: str | list[str], wanted: tuple[str, ...]) -> None:
    assert hosts_of(option) == wanted


@pytest.mark.parametrize(
    ("host", "wanted"), [("127.0.0.1", True), ("[::1]", True), ("reqserver", False), ("10.example", False)]
)
def test_what_is_an_address(host: str, wanted: bool) -> None:
    assert is_address(host) is wanted


def test_a_name_counts_by_its_addresses_once_it_has_several() -> None:
    answers: dict[str, list[str]] = {"reqserver": ["10.0.0.1"]}
    made = Addresses(("reqserver", "10.9.9.9"), lambda name: answers[name])
    try:
        seen = [made.current]
        for found in (["10.0.0.2", "10.0.0.1"], ["10.0.0.2"], [], ["10.0.0.3"]):
            answers["reqserver"] = found
            made.look_up()
            seen.append(made.current)
    finally:
        made.close()
    assert seen == [
        ("reqserver", "10.9.9.9"),
        ("10.0.0.1", "10.0.0.2", "10.9.9.9"),
        ("10.0.0.2", "10.9.9.9"),
        # A name server that is away takes no address away.
        ("10.0.0.2", "10.9.9.9"),
        ("10.0.0.3", "10.9.9.9"),
    ]


def test_addresses_are_not_looked_up() -> None:
    def fail(name: str) -> list[str]:
        raise AssertionError(name)

    assert Addresses(("127.0.0.1", "127.0.0.2"), fail).current == ("127.0.0.1", "127.0.0.2")


def test_another_one_is_chosen_where_there_is_one() -> None:
    assert other_than("a", ("a", "b")) == "b"
    assert other_than("a", ("a",)) == "a"
    assert other_than("", ("a",)) == "a"
    assert {other_than("", ("a", "b")) for _ in range(100)} == {"a", "b"}
