"""The agent: its configuration, its runs, what they are recorded in."""

from swink.agent.agent import Agent as Agent
