__virtual_aliases__ = ("first_alias", "second_alias")


def f():
    return "aliased"
