"""Where files come from: local trees, Git mirrors, fileserver backends, URLs, what a minion sent."""
