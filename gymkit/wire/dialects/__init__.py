"""From one model dialect to another: Chat Completions and Anthropic Messages from and to the Responses API.

The Responses API is the pivot, so four modules face Chat (``request_to_chat``, ``request_from_chat``,
``reply_to_chat``, ``reply_from_chat``) and four face Messages. A conversion takes an object that passed its check at
the door and returns ``Converted``: the other dialect's object, and a ``Dropped`` for each thing that has no place in
it. What is made anew and therefore neither kept nor reported is an object's envelope: the ids of items (not the
``call_id`` that joins a call with its output), ``status`` of items, and in a reply the echo of its request.
"""
