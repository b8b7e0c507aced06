"""The composition root: builds the server's objects, starts its tasks, and ends them."""
