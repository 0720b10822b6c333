"""How to go on when a reservation ends: an extension beside a new one, compared and never bought here."""
