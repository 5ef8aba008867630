"""The door for clients of OpenAI: an agent behind chat completions and responses."""
