"""Whether a target expression means a minion: glob, pcre, list, grain, pillar, compound."""
