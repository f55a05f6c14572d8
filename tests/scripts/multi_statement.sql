/* Several statements in one message: one round trip, one transaction. For mode simple. */
\set low random_gaussian(1, 1000, 3.5)
\set high :low + random_exponential(0, 500, 4)
BEGIN \; INSERT INTO pair VALUES (:client_id, :low, :high) \;
SELECT count(*) AS pairs, ':low' AS word FROM pair WHERE client = :client_id \gset
UPDATE branch SET balance = balance + (:word - :low) + (:pairs > 0)::int WHERE bid = 1 \; COMMIT;
