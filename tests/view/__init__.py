"""`titin view`: its server, as a client sees it, and its page, in a browser."""
