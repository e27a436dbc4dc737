"""Migration of a stock Salt master: its configuration and keys into Saltern (``saltern import``), and back (``saltern export``)."""
