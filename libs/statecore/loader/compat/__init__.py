"""What users' modules in Salt's style see as the package ``salt``. Served by ``loader/salt_imports.py`` to them alone.

It holds the names that such modules import most, with the meaning Salt gives them; it is not a copy of Salt.
"""

#: The version of Salt whose functions these are.
__version__ = "3008.3"
