"""The options of master and minion: the tables of options, and the reader of configuration files and environment variables."""
