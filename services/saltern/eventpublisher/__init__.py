"""The role eventpublisher: takes events on 4512 and sends them on 4513."""
