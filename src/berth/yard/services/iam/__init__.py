"""What the yard serves of AWS IAM."""
