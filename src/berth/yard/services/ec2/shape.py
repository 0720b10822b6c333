"""What EC2's answers are made of."""

from typing import Any

Shape = dict[str, Any]
"""An object as EC2 shows it, by botocore's member names."""
