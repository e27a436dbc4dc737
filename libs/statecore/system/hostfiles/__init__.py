"""Files that other programs of a host keep, read and written in their own form: for modules and states alike."""
