"""Salt's clients over the port ``Master``: users' runners and scripts that ``import saltern`` share them."""
