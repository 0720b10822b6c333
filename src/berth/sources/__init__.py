"""Where offers and prices come from; the only callers of search and price APIs. One file a way."""
