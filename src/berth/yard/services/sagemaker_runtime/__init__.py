"""What the yard serves of the Amazon SageMaker Runtime."""
