"""What the yard serves of Amazon EC2."""
