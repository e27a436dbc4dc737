"""The role reqserver: queues the requests of 4506 and 4507 and hands them to workers on 4516."""
