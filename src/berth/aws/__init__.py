"""Doors to AWS: who and where, the clients that can and cannot pay, what its error codes mean."""
