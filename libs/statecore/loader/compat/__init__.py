"""The package that users' modules in Salt's style import as ``salt``. ``loader/salt_imports.py`` gives it to these
modules only.

It contains the names that such modules import most often, with the meaning that Salt gives them. It is not a copy of
Salt.
"""

#: The version of Salt whose functions these are.
__version__ = "3008.3"
