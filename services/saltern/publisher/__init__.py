"""The role publisher: signs, encrypts and sends jobs on 4505."""
