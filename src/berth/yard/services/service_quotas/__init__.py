"""What the yard serves of Service Quotas."""
