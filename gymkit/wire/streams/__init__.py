"""A whole reply as the server-sent events that a streaming client of its dialect waits for.

Each module has ``events`` for a reply and ``failure`` for what went wrong once the stream was open. What they make is
one burst: the reply is whole, and recorded, before its first event is sent.
"""
