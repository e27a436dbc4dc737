"""Runtime of one minion: loader, grains, pillar, templates and state runs, put together."""
