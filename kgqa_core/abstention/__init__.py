"""When the graph does not hold the answer: how sure that is, and why."""
