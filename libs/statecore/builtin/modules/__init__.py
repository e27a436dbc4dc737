"""Salt's execution modules. Each file or folder is one module; its name is the file's name, unless the file sets
VIRTUAL.
"""
