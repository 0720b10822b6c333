"""`python -m berth` is the command `berth`."""

from berth.entry import main

if __name__ == "__main__":
    main()
