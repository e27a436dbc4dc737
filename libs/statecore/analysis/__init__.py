"""Static analysis of state trees: pure functions over low chunks, graphs, templates and plans. No state is run here.

``rules`` lists the kinds of finding that a check reports; ``functions``, ``requisites``, ``forms`` and ``templates``
search for them. ``diagram``, ``layout`` and ``svg`` draw a state run. ``provenance`` traces each argument of a state to
the file and line that set it. ``prediction`` predicts the result of each state; ``planfile`` compares two plans.
``statecore.analysis.inspection`` fetches, renders and compiles the trees for these functions.
"""
