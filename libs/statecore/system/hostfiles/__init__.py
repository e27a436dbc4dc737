"""Files of other programs on the host, read and written in their own formats, for execution and state modules."""
