-- Conditional expressions, integer and double arithmetic, bits, and lines that go on.
\set dice random(1, 6) + random(1, 6)
\set size CASE WHEN :dice < 4 THEN 1 \
               WHEN :dice >= 4 AND :dice <> 7 THEN 2 \
               WHEN :dice ISNULL THEN -1 END
\set price 2.5 * pow(1.1, :dice) - sqrt(:dice) / 3
\set cents int(:price * 100) % 100
\set bits (:dice << 4 | 3) # ~ :cents & 255
\set big greatest(:dice, 7, :cents) - least(1.5, :dice)
\set flag NOT (:dice % 2 = 0) IS TRUE
\set kind CASE WHEN :flag THEN 10 ELSE 20 END + -:dice / 2
INSERT INTO ordered VALUES (:client_id, :size::text, :price::double precision + :big, :bits, :kind::text, :flag);
