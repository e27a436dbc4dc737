"""The master's data in Redis. ``keys`` names every Redis key; ``store.Store`` groups all operations."""
