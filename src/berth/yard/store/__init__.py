"""Tables, migrations, and the one writer."""
