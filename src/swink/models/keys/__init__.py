"""API keys: which providers there are, which of their keys are stored, and the keychain that holds them."""
