"""Runtime of one minion: combines loader, grains, pillar, templates and state runs, so that functions can be called."""
