"""The environment servers we ship."""
