"""The door for a shell: each command is a few lines over ``sdk``, which it imports when it runs."""
