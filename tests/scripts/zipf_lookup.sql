-- Look-ups by Zipf's law, the ranks scattered over the keys; each is counted, so that the skew can be seen afterwards.
\set rank random_zipfian(1, 2000, 1.07)
\set aid 1 + permute(:rank, 2000)
SELECT balance
  FROM account          -- one row; by key
 WHERE aid = :aid;
INSERT INTO hit AS h (key, hits) VALUES (:aid, 1) ON CONFLICT (key) DO UPDATE SET hits = h.hits + 1;
