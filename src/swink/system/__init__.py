"""The operating system: where programs come from, and how they are started. Nothing of agents."""
