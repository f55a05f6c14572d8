//! wpi_orders against a private PostgreSQL, in every mode: what is read is what the seed says.

use crate::server::Server;
use plimsoll_record::Outcome;
use plimsoll_target::postgres::{Mode, Protocol};
use plimsoll_workload::drop_data;
use plimsoll_workload::wpi_orders::WpiOrders;
use std::sync::Arc;

#[test]
fn answers_are_right_in_every_mode() {
    let Some(server) = Server::start("") else { return };
    let text = r#"{"name": "wpi_orders", "size_bytes": 8388608, "seed": 5, "mix": {"new_order": 1, "payment": 1, "check_order": 1, "delivery": 1, "stock": 1}}"#;
    let data = Arc::new(WpiOrders::new(&serde_json::from_str(text).unwrap()).unwrap());
    server.populate(data.as_ref(), "plimsoll");
    for (place, mode) in [Mode::Prepared, Mode::Extended, Mode::Simple].into_iter().enumerate() {
        let first = 100 * place as u64;
        let protocol = Protocol { mode, describe: place == 1 };
        let (endings, report) = server.perform(&data, "plimsoll", (protocol, 0), first..first + 100);
        for ending in endings {
            assert_eq!((ending.outcome, ending.failure), (Outcome::Done, None), "{mode:?}");
        }
        assert!(report.verification.checked > 60 && report.verification.wrong == 0, "{mode:?}");
    }
}

#[test]
fn what_others_put_beside_our_tables_is_not_dropped() {
    let Some(server) = Server::start("") else { return };
    let text = r#"{"name": "wpi_orders", "size_bytes": 8388608, "seed": 5}"#;
    let data = WpiOrders::new(&serde_json::from_str(text).unwrap()).unwrap();
    server.populate(&data, "plimsoll");
    let mut client = server.client("plimsoll");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'plimsoll'";
    let loaded = client.integers(tables).unwrap();

    client.run("CREATE TABLE notes (text text); CREATE VIEW public.newest AS SELECT * FROM item").unwrap();
    let refused = drop_data(&data, &mut client, "plimsoll").unwrap_err().to_string();
    assert!(refused.contains("plimsoll holds objects that plimsoll-agent did not make (notes)"), "{refused}");
    client.run("DROP TABLE notes").unwrap();
    let refused = drop_data(&data, &mut client, "plimsoll").unwrap_err().to_string();
    assert!(refused.contains("depend"), "{refused}");
    assert_eq!(client.integers(tables).unwrap(), loaded);

    client.run("DROP VIEW public.newest").unwrap();
    assert!(drop_data(&data, &mut client, "plimsoll").unwrap());
    assert!(!drop_data(&data, &mut client, "plimsoll").unwrap());
}
