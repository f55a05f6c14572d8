-- 2,000 accounts by the index of their key, in whose order they lie.
\set first random(1, 100000 * :scale - 1999)
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN :first AND :first + 1999;
END;
