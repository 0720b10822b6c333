"""The fleet that the scenarios are planned against: few machines, three Regions, prices by Region."""

from __future__ import annotations

CLOCK = "2027-03-08T21:00:00Z"
"""The evening before scenario D1 begins; four weeks before D3."""

FLEET = """
kind = "rehearsal"
name = "Scenarios"

[[regions]]
name = "us-east-1"
zones = ["use1-az4", "use1-az5", "use1-az6"]

[[regions]]
name = "us-east-2"
zones = ["use2-az1", "use2-az3"]

[[regions]]
name = "us-west-2"
zones = ["usw2-az1", "usw2-az2"]

[quotas]                        # nobody may hold p5e
block_vcpus = { p5e = 0 }

[[hardware]]
type = "p5.48xlarge"

[[hardware]]
type = "p5e.48xlarge"

[[hardware]]
type = "p5en.48xlarge"

[[hardware]]
type = "p6-b200.48xlarge"

[[pools]]
hardware = "p5.48xlarge"
hosts = { use1-az6 = 3 }

[[pools]]
hardware = "p5e.48xlarge"
hosts = { use1-az6 = 2 }

[[pools]]                       # use2-az3 and usw2-az1 have no subnet in D3
hardware = "p5en.48xlarge"
hosts = { use1-az4 = 2, use2-az1 = 2, use2-az3 = 2, usw2-az1 = 2, usw2-az2 = 2 }

[[pools]]
hardware = "p6-b200.48xlarge"
hosts = { use1-az4 = 3, use1-az5 = 2, usw2-az1 = 2 }

[[price_lists]]
name = "spring"
from = 2027-01-01T00:00:00Z

[[price_lists.rates]]
hardware = "p5.48xlarge"
usd_per_hour = 47.757
assumed = true

[[price_lists.rates]]
hardware = "p5e.48xlarge"
usd_per_hour = 48.00
assumed = true

[[price_lists.rates]]
hardware = "p5en.48xlarge"
usd_per_hour = 63.158
assumed = true

[[price_lists.rates]]
hardware = "p6-b200.48xlarge"
usd_per_hour = 113.666
assumed = true

[[price_lists.rates]]           # half as dear in one place, so that "anywhere" means something
hardware = "p6-b200.48xlarge"
regions = ["us-west-2"]
usd_per_hour = 50.00
assumed = true

[[on_demand_rates]]
hardware = "p5.48xlarge"
usd_per_hour = 55.04
assumed = true

[[on_demand_rates]]
hardware = "p5en.48xlarge"
usd_per_hour = 63.296
assumed = true

[[on_demand_rates]]
hardware = "p6-b200.48xlarge"
usd_per_hour = 113.9328
assumed = true

[[hosting_rates]]
hardware = "p5.48xlarge"
usd_per_hour = 63.296
assumed = true
"""

NIGHT = """
name = "night"
type = "p5.48xlarge"
duration = "72h"
start = 2027-03-09T11:30:00Z
target = "instances"
regions = ["us-east-1"]
time_zone = "Europe/Lisbon"
checkpoint_every = "1h"
retryable = false
utilisation = 0.84

[launch]
image = "ami-0123456789abcdef0"
"""

RUNNERS = """
name = "runners"
type = "p6-b200.48xlarge"
duration = "14d"
start = 2027-03-18T11:30:00Z
target = "instances"
regions = ["us-east-1"]
zone_ids = ["use1-az4"]
budget = "45000 USD"

[tags]
team = "ci"
"""

BENCH = """
name = "bench"
type = "ml.p5.48xlarge"
duration = "24h"
start = 2027-03-13T11:30:00Z
target = "endpoint"
regions = ["us-east-1"]
budget = "1200 USD"
startup = "20min"
"""

RELEASE = """
name = "efa"
type = "p6-b200.48xlarge"
count = 2
duration = "1d..2d"
goal = "shortest"
target = "instances"
regions = ["us-east-1", "us-east-2", "us-west-2"]
budget = "2500 USD"

[tags]
team = "release"
"""
