"""The coding agent: assistant, terminal, command line."""
