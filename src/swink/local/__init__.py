"""Local models."""
