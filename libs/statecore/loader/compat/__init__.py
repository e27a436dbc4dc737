"""What users' modules in Salt's style see as the package ``salt``. Served by ``loader/dunders.py`` to them alone.

It holds the names that such modules import most, with the meaning Salt gives them; it is not a copy of Salt.
"""
