SELECT count(*), sum(abalance) FROM pgbench_accounts JOIN owners ON owner = aid;
