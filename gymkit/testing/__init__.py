"""Doubles for tests, lessons and users: agents and services that do what they are told."""
