"""What an offer really costs: where its money goes, how it compares over use, what more would cost."""
