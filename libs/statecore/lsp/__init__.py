"""The language server ``statecore lsp``: completion, hover, diagnostics and refactoring of state trees in editors.

Pure parts: ``facts`` reads what one file declares and refers to, ``index`` joins the facts of a tree, ``cursor`` says what is
under the cursor, ``completion``, ``hover``, ``navigation``, ``outline`` and ``actions`` answer from these. ``catalogue`` knows the
functions of modules. Edges: ``rendering`` renders and checks a tree, in a child process (``worker``) with few rights;
``server`` speaks the protocol, and is the only part that imports pygls. The wall is explained in docs/decisions/.
"""
