-- About 2,000 accounts by the index of a hash of their key: each lies on another page. 2,000 of 100,000 a scale are a fiftieth.
\set width 4294967296 / 50 / :scale
\set first random(-2147483648, 2147483647 - :width)
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT sum(abalance) FROM pgbench_accounts WHERE hashint4(aid) BETWEEN :first AND :first + :width;
END;
