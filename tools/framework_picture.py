"""Draw docs/decision-framework.svg from the planner's rules; a test holds the file to them."""

from __future__ import annotations

from pathlib import Path

from berth.planner.framework.picture import svg

FILE = Path(__file__).resolve().parent.parent / "docs" / "decision-framework.svg"

if __name__ == "__main__":
    FILE.write_text(svg(), encoding="utf-8")
    print(f"written: {FILE.name}")
