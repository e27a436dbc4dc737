"""One job's life on the minion: targeting, journal, jobber, spool, outbox."""
