"""The pytest fixture `yard`, usable by other projects."""
