"""Everything that needs JAX: the task, and learning it."""
