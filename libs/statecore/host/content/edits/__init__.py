"""What edits make of a file's text: pure functions from the text that is there to the text that is to be there.

The ``file`` states plan with them, the ``file`` module does at once what they say. Each raises InvocationError for
arguments that mean nothing, and CommandError for a text that they cannot be applied to.
"""
