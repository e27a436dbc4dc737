"""One job's life on the minion: journal, jobber, spool, outbox, and the search for missed publications."""
