"""The master's tops that Saltern ships."""
