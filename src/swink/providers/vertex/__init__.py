"""Gemini and Claude on Google's Vertex AI."""
