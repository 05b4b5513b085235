"""The contract of each kind of server, one noun a file."""
