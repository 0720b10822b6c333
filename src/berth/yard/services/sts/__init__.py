"""What the yard serves of AWS STS."""
