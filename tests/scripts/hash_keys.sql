-- Keys that look random but are a function of a counter, as benchmarks of key-value stores make them.
\set counter :counter + 1
\set key abs(hash(:counter * 1000 + :client_id)) % 1000000007
\set fnv hash_fnv1a(:counter)
\set murmur hash_murmur2(:counter, 5432)
\set bucket mod(abs(hash_fnv1a(:key, :default_seed) >> 3), 16)
INSERT INTO hashed (client, key, fnv, murmur, bucket) VALUES (:client_id, :key, :fnv, :murmur, :bucket);
