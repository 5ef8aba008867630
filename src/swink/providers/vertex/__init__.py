"""Gemini and Claude on Google's Vertex AI."""

from swink.providers.vertex.adapter import VertexStreamFn

__all__ = ["VertexStreamFn"]
