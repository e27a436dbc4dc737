"""Jobs as their publisher sees them: wait for returns, publish in batches, collect the results of runners."""
