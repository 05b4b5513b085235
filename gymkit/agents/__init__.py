"""The agent servers we ship."""
