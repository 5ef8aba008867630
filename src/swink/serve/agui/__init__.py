"""The AG-UI door: runs of agents as the events of the Agent User Interaction protocol, version 1.0."""
