"""Imports a file of _utils and a neighbour by name"""

import neighbour
import plainlib
from package_of_users import inner_value


def value():
    return [plainlib.VALUE, neighbour.NUMBER, inner_value(), plainlib.shout("x")]


def late():
    import package_of_users.inner
    from package_of_users.inner import VALUE

    return [VALUE, package_of_users.inner.where()]
