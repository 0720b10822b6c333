"""AWS's protocols both ways, compiled from botocore's service models; Signature Version 4; errors."""
