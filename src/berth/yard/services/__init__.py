"""One package an AWS service, one file a noun."""
