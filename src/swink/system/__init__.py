"""The operating system: where programs come from, how they are started, what paths lead to. Nothing of agents."""
