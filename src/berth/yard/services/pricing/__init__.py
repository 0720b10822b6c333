"""What the yard serves of the AWS Price List Query API."""
