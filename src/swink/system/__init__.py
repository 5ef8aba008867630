"""The operating system: how programs are found and started, and what paths lead to. Nothing of agents."""
