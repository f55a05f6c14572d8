-- The bank: one account, one teller, one branch, one line of history.
\set accounts 1000 * :scale
\set tellers 10 * :scale
\set aid random(1, :accounts)
\set bid random(1, 1 * :scale)
\set tid random(1, :tellers)
\set delta random(-5000, 5000)
BEGIN;
UPDATE account SET balance = balance + :delta WHERE aid = :aid;
SELECT balance FROM account WHERE aid = :aid;
UPDATE teller SET balance = balance + :delta WHERE tid = :tid;
UPDATE branch SET balance = balance + :delta WHERE bid = :bid;
INSERT INTO history (tid, bid, aid, delta, client) VALUES (:tid, :bid, :aid, :delta, :client_id);
END;
