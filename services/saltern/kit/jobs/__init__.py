"""Jobs from the side of who asked for them: waiting for returns, in batches, for what a runner made. Commands and runners do it."""
