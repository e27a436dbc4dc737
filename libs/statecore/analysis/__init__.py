"""What can be said about a state tree without running it: pure functions over chunks, graphs, templates and plans.

``rules`` names what a check can find, ``functions``, ``requisites``, ``forms`` and ``templates`` look for it; ``diagram`` and
``layout`` make pictures of a run; ``provenance`` tells where a state has its arguments from; ``prediction`` compares plans.
Who fetches, renders and runs what they look at is ``statecore.analysis.inspection``.
"""
