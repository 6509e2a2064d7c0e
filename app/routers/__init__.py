"""The routes. Each is thin: wire in, service, wire out."""
