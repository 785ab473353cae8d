"""What several widgets share."""
