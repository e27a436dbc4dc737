"""External pillars that Saltern ships."""
