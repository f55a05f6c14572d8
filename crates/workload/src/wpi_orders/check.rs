//! The consistency check after a trial: what the transactions said they did is what the tables hold. Exact, and cheap.
//!
//! - `pending_order`, `payment`, `delivery` grew by the transactions done, or by more if some were lost. They are small and
//!   counted whole.
//! - `history`: a new order inserts its amount and adds it to its account's history in one transaction, so the sum over
//!   `history` less its sum as loaded (computed by the generator) equals the sum over inserted pending orders exactly, lost
//!   ones or not. If few accounts were touched, only they are read, by key (the plans say which); otherwise all are.
//! - `customer`, `customer_account` have millions of rows that nothing ever writes: the highest key and the bytes of the
//!   table are those when loading had ended. `item`, `stock`, `orders` are small and counted whole.

use super::rows::Rows;
use super::tables::TableId;
use super::transactions::Draw;
use crate::checks::{between, exact, total};
use crate::data_set::Stamp;
use plimsoll_record::{Check, Summary};
use plimsoll_target::postgres::{Client, Error};
use std::collections::BTreeSet;

/// Replaying more plans than this takes longer than reading all of a table.
const REPLAYED_MAX: u64 = 1_000_000;
/// An account read by key costs about a page read in random order; reading all costs one in sequence.
const PAGES_A_KEY: i64 = 8;
const PAGE_BYTES: i64 = 8192;

/// What the tables were loaded with, and what is done to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded<'a> {
    pub(super) rows: &'a Rows,
    pub(super) draw: &'a Draw,
}

pub(super) fn check(
    data: &Loaded<'_>,
    client: &mut Client,
    stamp: &Stamp,
    segments: &[Summary],
) -> Result<Vec<Check>, Error> {
    let mut checks = Vec::new();
    for (table, kind) in
        [(TableId::PendingOrder, "new_order"), (TableId::Payment, "payment"), (TableId::Delivery, "delivery")]
    {
        let done = total(segments, &format!("{kind}_done"));
        let lost = total(segments, &format!("{kind}_lost"));
        let found = count(client, table)? - data.rows.count(table) as i64;
        checks.push(between(format!("{}: rows inserted", table.name()), done, done + lost, found));
    }
    let spent = spent_by_new_orders(data, client)?;
    let done = total(segments, "total_spent_cents_done");
    let lost = total(segments, "total_spent_cents_lost");
    checks.push(between("pending_order: cents inserted".to_owned(), done, done + lost, spent));
    checks.push(history(data, client, stamp, segments, spent)?);
    for table in [TableId::Customer, TableId::CustomerAccount] {
        let name = table.name();
        let found = client.integers(&format!("SELECT max(account_number), pg_relation_size('{name}') FROM {name}"))?;
        checks.push(exact(format!("{name}: highest key"), data.rows.count(table) as i64, found[0]));
        if let Some(&bytes) = stamp.heap_bytes.get(name) {
            checks.push(exact(format!("{name}: bytes"), bytes, found[1]));
        }
    }
    for table in [TableId::Item, TableId::Stock, TableId::Orders] {
        let found = count(client, table)?;
        checks.push(exact(format!("{}: rows", table.name()), data.rows.count(table) as i64, found));
    }
    Ok(checks)
}

fn count(client: &mut Client, table: TableId) -> Result<i64, Error> {
    Ok(client.integers(&format!("SELECT count(*) FROM {}", table.name()))?[0])
}

fn spent_by_new_orders(data: &Loaded<'_>, client: &mut Client) -> Result<i64, Error> {
    let loaded = data.rows.count(TableId::PendingOrder);
    let sql = format!("SELECT coalesce(sum(total_spent), 0)::bigint FROM pending_order WHERE order_number > {loaded}");
    Ok(client.integers(&sql)?[0])
}

fn history(
    data: &Loaded<'_>,
    client: &mut Client,
    stamp: &Stamp,
    segments: &[Summary],
    spent: i64,
) -> Result<Check, Error> {
    let pages = stamp.heap_bytes.get(TableId::History.name()).copied().unwrap_or(0) / PAGE_BYTES;
    let touched = touched_accounts(data, segments).filter(|accounts| accounts.len() as i64 * PAGES_A_KEY <= pages);
    let (name, condition, loaded) = match &touched {
        Some(accounts) => {
            let list: Vec<String> = accounts.iter().map(i64::to_string).collect();
            let loaded = accounts.iter().map(|&account| data.rows.history_total_spent(account)).sum::<i64>();
            client.run("SET enable_seqscan = off")?;
            ("history: cents added, accounts touched", format!("= ANY('{{{}}}')", list.join(",")), loaded)
        }
        None => {
            let accounts = data.rows.count(TableId::History) as i64;
            let loaded = (1..=accounts).map(|account| data.rows.history_total_spent(account)).sum::<i64>();
            ("history: cents added, all accounts", "IS NOT NULL".to_owned(), loaded)
        }
    };
    let sql = format!("SELECT coalesce(sum(total_spent), 0)::bigint FROM history WHERE account_number {condition}");
    let found = client.integers(&sql)?[0];
    client.run("RESET enable_seqscan")?;
    Ok(exact(name.to_owned(), spent, found - loaded))
}

/// Accounts that new orders of `segments` named, done or not; `None` if there are too many transactions to replay.
fn touched_accounts(data: &Loaded<'_>, segments: &[Summary]) -> Option<BTreeSet<i64>> {
    let transactions: u64 = segments.iter().map(|s| s.next_index.saturating_sub(s.first_index)).sum();
    if transactions > REPLAYED_MAX {
        return None;
    }
    let indexes = segments.iter().flat_map(|segment| segment.first_index..segment.next_index);
    Some(indexes.filter_map(|index| data.draw.plan(index).updated_account()).collect())
}
