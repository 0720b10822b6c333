-- What one's own asks saw. One row an hour and question, so that asking more often makes no more rows.
CREATE TABLE seen (
    realm TEXT NOT NULL,            -- aws, or a yard's address: one world's stock says nothing of another's
    account TEXT NOT NULL,
    way TEXT NOT NULL,
    region TEXT NOT NULL,
    instance_type TEXT NOT NULL,
    instances INTEGER NOT NULL,
    hours INTEGER NOT NULL,         -- the duration that was asked for
    at_hour INTEGER NOT NULL,       -- microseconds since 1970, the hour's beginning, on the clock that is followed
    asks INTEGER NOT NULL,
    with_offers INTEGER NOT NULL,
    refused INTEGER NOT NULL,       -- asks that were not answered in full: they say nothing about stock
    cheapest INTEGER,               -- micros an instance-hour; NULL where no price was told
    currency TEXT,
    outcome TEXT NOT NULL,          -- the last one
    PRIMARY KEY (realm, account, way, region, instance_type, instances, hours, at_hour)
) WITHOUT ROWID;
CREATE INDEX seen_by_hour ON seen (at_hour);

-- The same by hour of the day (UTC): what is read, of a size that does not grow with time.
CREATE TABLE by_hour (
    realm TEXT NOT NULL,
    instance_type TEXT NOT NULL,
    account TEXT NOT NULL,
    way TEXT NOT NULL,
    region TEXT NOT NULL,
    hour INTEGER NOT NULL,
    asks INTEGER NOT NULL,
    with_offers INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    cheapest INTEGER,
    currency TEXT,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (realm, instance_type, account, way, region, hour)
) WITHOUT ROWID;

-- Live hourly prices, one row an hour.
CREATE TABLE rates (
    realm TEXT NOT NULL,
    instance_type TEXT NOT NULL,
    way TEXT NOT NULL,
    region TEXT NOT NULL,
    place TEXT NOT NULL,            -- a zone id, or the Region
    component TEXT NOT NULL,
    at_hour INTEGER NOT NULL,
    price INTEGER NOT NULL,         -- micros an hour
    currency TEXT NOT NULL,
    PRIMARY KEY (realm, instance_type, way, region, place, component, at_hour)
) WITHOUT ROWID;
CREATE INDEX rates_by_hour ON rates (at_hour);

-- Searches that a bucket of AWS's counts, of the last minutes, on this machine's own clock.
CREATE TABLE sent (
    realm TEXT NOT NULL,
    account TEXT NOT NULL,
    region TEXT NOT NULL,
    at INTEGER NOT NULL,            -- microseconds since 1970
    calls INTEGER NOT NULL
);
CREATE INDEX sent_by_region ON sent (realm, account, region, at);

-- Waits (berth plan --wait-until): what was found, and who was told, so that nothing is told twice.
CREATE TABLE waits (
    realm TEXT NOT NULL,
    account TEXT NOT NULL,
    wait TEXT NOT NULL,             -- a digest of the need, the limit and the date
    found_at INTEGER NOT NULL,
    said TEXT NOT NULL,
    PRIMARY KEY (realm, account, wait)
) WITHOUT ROWID;
CREATE TABLE told (
    realm TEXT NOT NULL,
    account TEXT NOT NULL,
    wait TEXT NOT NULL,
    channel TEXT NOT NULL,          -- a digest of the address, which may hold a secret
    state TEXT NOT NULL,            -- telling, told, refused
    PRIMARY KEY (realm, account, wait, channel)
) WITHOUT ROWID;
