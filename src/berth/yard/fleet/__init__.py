"""What a yard has: the fleet file, Regions and zones, pools of hosts, and their calendars."""
