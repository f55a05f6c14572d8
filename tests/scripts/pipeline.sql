-- A transaction in one request: nothing of it waits for the answer before.
\set aid random(1, 2000)
\set delta random(-5000, 5000)
\startpipeline
BEGIN;
UPDATE account SET balance = balance + :delta WHERE aid = :aid;
SELECT balance FROM account WHERE aid = :aid;
\if :delta > 0
\sleep 1 us
INSERT INTO history (tid, bid, aid, delta, client) VALUES (1, 1, :aid, :delta, :client_id);
\endif
END;
\endpipeline
