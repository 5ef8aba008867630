"""The operating system: how programs are found and started, and what paths lead to. Nothing of agents."""

VERSION = "0.3.0"
"""The version of swink; it stands here alone, in the lowest package, and everything else reads it."""
