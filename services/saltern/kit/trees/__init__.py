"""The file and pillar trees that the master serves, and how remote ones are kept current."""
