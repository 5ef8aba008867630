"""Chat completions: the protocol of OpenAI that many servers speak."""
