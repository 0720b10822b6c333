"""What the account holds, whoever bought it, joined with what the journal knows. Pure."""
