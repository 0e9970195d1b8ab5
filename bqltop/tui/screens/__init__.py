"""Screens: the live view and what is laid over it."""
