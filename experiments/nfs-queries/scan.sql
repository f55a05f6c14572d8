SELECT sum(abalance) FROM pgbench_accounts;
