//! Whether a schema holds this bank: by our stamp if there is one, and always by the columns and the counts of pgbench's tables.

use super::tables::{ACCOUNTS, ACCOUNTS_PER_BRANCH, BRANCHES, HISTORY, TELLERS, Tables};
use crate::data_set::{DataSetError, Stamp, stamp_of_table};
use plimsoll_target::postgres::{Client, Error, literal, quoted};
use std::collections::BTreeMap;

/// Makes sure that `schema` holds `tables`; a stamp in it has to be `stamp`.
pub(super) fn recognise(tables: &Tables, stamp: &Stamp, client: &mut Client, schema: &str) -> Result<(), DataSetError> {
    let refused = |what: String| Err(DataSetError::Schema(format!("target.schema: {schema} {what}")));
    let found = columns_in(client, schema)?;
    if let Some(missing) = [ACCOUNTS, BRANCHES, HISTORY, TELLERS].into_iter().find(|table| !found.contains_key(*table))
    {
        return refused(format!("has no table {missing}; populate it first"));
    }
    let number = |client: &mut Client, what: &str, table: &str| -> Result<i64, Error> {
        let sql = format!("SELECT coalesce({what}, 0)::bigint FROM {}.{table}", quoted(schema));
        Ok(client.integers(&sql)?[0])
    };
    let scale = number(client, "count(*)", BRANCHES)?;
    if scale != tables.scale as i64 {
        let wanted = tables.scale;
        return refused(format!(
            "holds pgbench's tables at scale {scale}, not {wanted}; allowed here: workload.scale {scale}"
        ));
    }
    for (table, columns) in &found {
        let wanted = tables.columns(table).iter().map(|(name, kind)| format!("{name} {kind}")).collect::<Vec<_>>();
        if *columns != wanted.join(", ") {
            return refused(format!("has a table {table} ({columns}), which is not pgbench's"));
        }
    }
    let accounts = number(client, "max(aid)", ACCOUNTS)?;
    let tellers = number(client, "count(*)", TELLERS)?;
    if (accounts, tellers) != (tables.accounts() as i64, tables.tellers() as i64) {
        return refused(format!(
            "holds accounts up to {accounts} and {tellers} tellers, not {ACCOUNTS_PER_BRANCH} and 10 for each of {scale} \
             branches; populate it again"
        ));
    }
    match stamp_of_table(client, schema, BRANCHES)? {
        (_, Some(found)) => stamp.require(Some(found), schema).map(drop),
        (_, None) => Ok(()),
    }
}

/// The columns of each of pgbench's tables in `schema`, as `name type, ...`.
fn columns_in(client: &mut Client, schema: &str) -> Result<BTreeMap<String, String>, Error> {
    let names = [ACCOUNTS, BRANCHES, HISTORY, TELLERS].map(literal).join(", ");
    let sql = format!(
        "SELECT relname, string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) \
         FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped \
         WHERE relnamespace = to_regnamespace({}) AND relkind IN ('r', 'p') AND relname IN ({names}) GROUP BY relname",
        literal(&quoted(schema))
    );
    let pair = |row: Vec<Option<String>>| {
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        (values.next().unwrap_or_default(), values.next().unwrap_or_default())
    };
    Ok(client.rows(&sql)?.into_iter().map(pair).collect())
}
