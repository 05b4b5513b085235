"""DataFrame in, widget out, each with a static fallback."""
