"""The door for clients of OpenAI: an agent behind chat completions and responses."""

from swink.serve.openai.door import OpenAIDoor as OpenAIDoor
