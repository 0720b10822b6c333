"""Is everything there that a need takes? Judgements over what was read; nothing here asks anybody. Pure."""
