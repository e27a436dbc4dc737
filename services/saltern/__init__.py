"""The roles of a Salt master as services of their own, the minion, and the salt commands."""
