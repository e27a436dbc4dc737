"""The file and pillar trees that the master serves, and the updates of remote trees."""
