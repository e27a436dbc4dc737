"""Jobs from the side of the operator's commands: wait for returns, publish in batches, collect the results of runners."""
