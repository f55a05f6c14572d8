-- Half of each page is free for the rows' next versions, and no column that changes is indexed: versions are pruned in
-- their page (HOT), so that table, index and what is vacuumed stay as large as they are.
CREATE TABLE kept (id integer PRIMARY KEY, value bigint NOT NULL, filler text NOT NULL) WITH (fillfactor = 50);
INSERT INTO kept SELECT id, 0, repeat('x', 80) FROM generate_series(1, 100000) AS id;
ANALYZE kept;
