-- Nine readings to one change, and now and then a look at a whole branch.
\set aid random(1, 1000 * :scale)
\set dice random(1, 100)
\if :dice <= 88
SELECT balance FROM account WHERE aid = :aid;
\elif :dice <= 90 and not :dice = 89
SELECT bid, sum(balance) FROM account WHERE bid = (SELECT bid FROM account WHERE aid = :aid) GROUP BY bid;
\else
  \if :dice > :top
  UPDATE account SET balance = balance + 100 WHERE aid = :aid;
  \else
  UPDATE account SET balance = balance + 1 WHERE aid = :aid;
  \endif
\endif
