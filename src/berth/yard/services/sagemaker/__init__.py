"""What the yard serves of Amazon SageMaker."""
