"""Colours, pictures and the notation of the course."""
