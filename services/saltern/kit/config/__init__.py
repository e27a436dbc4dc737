"""The options of master and minion: what there is, how files, directories and environment variables are read into it."""
