//! The refresh functions on a private PostgreSQL: what each leaves is what its set says, and no set is used twice.

use crate::decision_support::{data, failing};
use crate::server::Server;
use plimsoll_target::postgres::Client;
use plimsoll_workload::decision_support::DecisionSupport;
use plimsoll_workload::decision_support::refresh::{
    Function, Left, RefreshSet, Refreshed, SETS_MAX, asks_beside, prepare,
};
use std::collections::BTreeSet;

const SCHEMA: &str = "dss";

fn perform(data: &DecisionSupport, client: &mut Client, function: Function) -> Refreshed {
    prepare(client, data.scale_factor(), function, 0).unwrap().perform(client).unwrap()
}

fn keys(client: &mut Client, sql: &str) -> BTreeSet<i64> {
    client.rows(sql).unwrap().into_iter().flatten().flatten().map(|key| key.parse().unwrap()).collect()
}

/// What changes when a set is used: how many rows there are, and which sets were taken.
fn state(client: &mut Client) -> Vec<i64> {
    let sql = "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM lineitem), \
               (SELECT sum(taken * CASE function WHEN 'RF1' THEN 1 ELSE 10000 END) FROM refresh_sets)";
    client.integers(sql).unwrap()
}

#[test]
fn pairs_leave_what_their_sets_say() {
    let Some(server) = Server::start("") else { return };
    let data = data(0.02);
    server.populate(&data, SCHEMA);
    let mut client = server.client(SCHEMA);
    let loaded = keys(&mut client, "SELECT o_orderkey FROM orders");
    let mut expected = loaded.clone();
    for number in 1..=3 {
        let set = RefreshSet::new(data.scale_factor(), number).unwrap();
        for function in Function::ALL {
            let done = perform(&data, &mut client, function);
            assert_eq!(done, Refreshed { function, set: number, orders: 30, lines: set.lines(function) });
            match function {
                Function::Rf1 => expected.extend(set.inserted_keys()),
                Function::Rf2 => set.deleted_keys().for_each(|key| assert!(expected.remove(&key))),
            }
            assert_eq!(keys(&mut client, "SELECT o_orderkey FROM orders"), expected, "{done:?}");
            assert_eq!(keys(&mut client, "SELECT DISTINCT l_orderkey FROM lineitem"), expected, "{done:?}");
            assert_eq!(failing(&data, &mut client, SCHEMA), BTreeSet::new(), "{done:?}");
        }
    }
    assert_eq!(expected.intersection(&loaded).count(), 30_000 - 90);
}

#[test]
fn what_a_function_left_is_asked_of_its_own_keys() {
    let Some(server) = Server::start("") else { return };
    let data = data(0.01);
    server.populate(&data, SCHEMA);
    let (mut client, mut beside) = (server.client(SCHEMA), server.client(SCHEMA));
    asks_beside(&mut beside).unwrap();
    perform(&data, &mut client, Function::Rf1);
    for function in Function::ALL {
        let prepared = prepare(&mut client, data.scale_factor(), function, 0).unwrap();
        let before = prepared.left(&mut beside).unwrap();
        assert_ne!(before, prepared.expected(), "before {function:?}");
        prepared.perform(&mut client).unwrap();
        let expected = prepared.expected();
        assert_eq!(prepared.left(&mut beside).unwrap(), expected);
        // Neighbours are no concern of it.
        client.run("UPDATE orders SET o_totalprice = 0 WHERE o_orderkey >= 1000").unwrap();
        assert_eq!(prepared.left(&mut beside).unwrap(), expected);
    }
    // Set 1 is inserted and deleted, set 2 inserted: each of its orders is looked at.
    let set = RefreshSet::new(data.scale_factor(), 2).unwrap();
    let [first, last] = [set.inserted_keys().next().unwrap(), set.inserted_keys().last().unwrap()];
    let mut again = prepare(&mut client, data.scale_factor(), Function::Rf1, 0).unwrap();
    assert_eq!(again.set(), 3);
    client.run("UPDATE refresh_sets SET taken = 1 WHERE function = 'RF1'").unwrap();
    again = prepare(&mut client, data.scale_factor(), Function::Rf1, 0).unwrap();
    let expected = again.expected();
    assert_eq!(again.left(&mut beside).unwrap(), expected);
    client.run(&format!("UPDATE orders SET o_totalprice = o_totalprice + 0.01 WHERE o_orderkey = {last}")).unwrap();
    assert_eq!(again.left(&mut beside).unwrap(), Left { prices_wrong: 1, ..expected });
    client.run(&format!("DELETE FROM orders WHERE o_orderkey = {first}")).unwrap();
    let left = again.left(&mut beside).unwrap();
    assert_eq!(left, Left { orders: expected.orders - 1, prices_wrong: 2, ..expected });
    client.run(&format!("DELETE FROM lineitem WHERE l_orderkey = {first}")).unwrap();
    let left = again.left(&mut beside).unwrap();
    assert_eq!((left.orders, left.prices_wrong), (expected.orders - 1, 1));
    assert!(left.lines < expected.lines);
}

#[test]
fn a_set_is_taken_once_or_not_at_all() {
    let Some(server) = Server::start("") else { return };
    let data = data(0.01);
    server.populate(&data, SCHEMA);
    let (mut client, mut other) = (server.client(SCHEMA), server.client(SCHEMA));
    let fresh = state(&mut client);
    for function in Function::ALL {
        let late = prepare(&mut other, data.scale_factor(), function, 0).unwrap();
        assert_eq!(perform(&data, &mut client, function).set, 1);
        let before = state(&mut client);
        let refused = late.perform(&mut other).unwrap_err().to_string();
        assert!(refused.contains("set 1 was taken by another session"), "{refused}");
        assert_eq!(state(&mut other), before, "and the session goes on");
    }
    assert_ne!(state(&mut client), fresh);

    // What a set would delete is not all there: nothing is deleted.
    let key = RefreshSet::new(data.scale_factor(), 2).unwrap().deleted_keys().nth(3).unwrap();
    client.run(&format!("DELETE FROM orders WHERE o_orderkey = {key}")).unwrap();
    let before = state(&mut client);
    let prepared = prepare(&mut client, data.scale_factor(), Function::Rf2, 0).unwrap();
    let refused = prepared.perform(&mut client).unwrap_err().to_string();
    assert!(refused.contains("RF2 of set 2 found 14 orders"), "{refused}");
    assert_eq!(state(&mut client), before);

    client.run(&format!("UPDATE refresh_sets SET taken = {SETS_MAX}")).unwrap();
    let refused = prepare(&mut client, data.scale_factor(), Function::Rf1, 0).unwrap_err().to_string();
    assert!(refused.contains("populate it again"), "{refused}");
}
