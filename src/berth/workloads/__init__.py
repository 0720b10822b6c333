"""What runs in a reservation: deploy, read back and compare, invoke, clear up, account for."""
