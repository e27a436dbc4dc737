"""``saltern rotate``: replaces keys, passwords and certificates while jobs run. All roles can work after each step."""
