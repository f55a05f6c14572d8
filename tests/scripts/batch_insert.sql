-- Batches whose size varies around fifty.
\set run :run + 1
\set rows random_gaussian(20, 80, 3.0)
\set factor random(1, 1000000)
BEGIN;
INSERT INTO readings (client, run, place, value)
SELECT :client_id, :run, place, place * :factor::bigint % 1000003 FROM generate_series(1, :rows) AS place;
DELETE FROM readings WHERE client = :client_id AND run <= :run - 10;
COMMIT;
