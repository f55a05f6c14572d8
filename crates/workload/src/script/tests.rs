//! Draws, choices and expressions against what pgbench 15.18 made of them (`tests/scripts`; `tests/postgres/script` records
//! it), and what is refused.

use super::expression::Scope;
use super::parse::Action;
use super::random::Generator;
use super::value::Value;
use super::{Definition, NAME, Parameters, ScriptClient, Scripts, Source};
use plimsoll_target::postgres::Mode;

const DRAWS: &str = include_str!("../../../../tests/scripts/draws.sql");
const DRAWN: &str = include_str!("../../../../tests/scripts/draws.txt");
const CHOSEN: &str = include_str!("../../../../tests/scripts/choices.txt");
const EXPRESSIONS: &str = include_str!("../../../../tests/scripts/expressions.txt");

fn parameters(texts: &[(&str, &str)], seed: u64, client_count: u32) -> Parameters {
    let source =
        |(name, text): &(&str, &str)| Source { name: (*name).to_owned(), text: (*text).to_owned(), weight: None };
    let scripts = texts.iter().map(source).collect();
    Parameters { name: NAME.to_owned(), scripts, variables: std::collections::BTreeMap::new(), seed, client_count }
}

/// Takes the steps that set variables up to the first that does something else.
fn take_sets(scripts: &Scripts, client: &mut ScriptClient) -> Result<(), String> {
    for step in &scripts.scripts[client.script].steps {
        let Action::Set(place, expression) = &step.action else { return Ok(()) };
        let (variables, names) = (&client.variables, &scripts.names);
        let value = expression.value(&mut Scope { variables, names, draws: &mut client.draws })?;
        client.variables.set(*place, value);
    }
    Ok(())
}

#[test]
fn draws_equal_those_of_pgbench() {
    let mut lines = DRAWN.lines();
    for seed in [42, u64::MAX] {
        let scripts = Scripts::new(&parameters(&[("draws.sql", DRAWS)], seed, 3), Mode::Simple).unwrap();
        for number in 0..3 {
            let mut client = ScriptClient::new(&scripts, number);
            for _ in 0..30 {
                client.begin(&scripts);
                take_sets(&scripts, &mut client).unwrap();
                let mut line = format!("{seed} {number}").into_bytes();
                for place in &scripts.commands[0].variables[1..] {
                    line.push(b' ');
                    assert!(client.variables.write(*place, &mut line));
                }
                assert_eq!(Some(String::from_utf8(line).unwrap().as_str()), lines.next());
            }
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn another_try_draws_the_same() {
    let scripts = Scripts::new(&parameters(&[("draws.sql", DRAWS)], 42, 3), Mode::Simple).unwrap();
    let mut client = ScriptClient::new(&scripts, 1);
    client.begin(&scripts);
    take_sets(&scripts, &mut client).unwrap();
    let drawn = client.draws.clone();
    client.again();
    take_sets(&scripts, &mut client).unwrap();
    assert_eq!(client.draws, drawn);
}

#[test]
fn choices_equal_those_of_pgbench() {
    let texts = [("a@1", "SELECT 1;"), ("b@3", "SELECT 1;"), ("c@2", "SELECT 1;")];
    let scripts = Scripts::new(&parameters(&texts, 42, 3), Mode::Simple).unwrap();
    for (number, line) in CHOSEN.lines().enumerate() {
        let mut client = ScriptClient::new(&scripts, number as u32);
        let choose = |_| {
            client.begin(&scripts);
            client.script.to_string()
        };
        assert_eq!((0..line.len()).map(choose).collect::<String>(), line);
    }
}

fn computed(expression: &str) -> String {
    let text = format!("\\set x {expression}\n");
    let mut parameters = parameters(&[("x", &text)], 42, 1);
    let variables = [
        ("i", "42"),
        ("d", "2.5"),
        ("t", "true"),
        ("y", "Yes"),
        ("n", "null"),
        ("word", "abc"),
        ("neg", "-7"),
        ("zeros", "007"),
        ("big", "9223372036854775807"),
    ];
    parameters.variables = variables.map(|(name, text)| (name.to_owned(), Definition::Text(text.to_owned()))).into();
    let Ok(scripts) = Scripts::new(&parameters, Mode::Simple) else { return "refused".to_owned() };
    let mut client = ScriptClient::new(&scripts, 0);
    client.begin(&scripts);
    if let Err(message) = take_sets(&scripts, &mut client) {
        return format!("error {message}");
    }
    let place = scripts.names.find("x").unwrap();
    let mut value = match client.variables.value(place, &scripts.names).unwrap() {
        Value::Null => return "null".to_owned(),
        Value::Boolean(_) => "boolean ",
        Value::Integer(_) => "int ",
        Value::Double(_) => "double ",
    }
    .to_owned()
    .into_bytes();
    client.variables.write(place, &mut value);
    String::from_utf8(value).unwrap()
}

#[test]
fn expressions_give_what_they_give_in_pgbench() {
    let mut wrong = Vec::new();
    for line in EXPRESSIONS.lines().filter(|line| !line.starts_with('#')) {
        let (expression, recorded) = line.split_once('\t').unwrap();
        let found = computed(expression);
        if found != recorded {
            wrong.push(format!("{expression}: {found}; pgbench: {recorded}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn refusal(text: &str) -> String {
    Scripts::new(&parameters(&[("a.sql", text)], 1, 1), Mode::Prepared).map(|_| ()).unwrap_err()
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let allowed = "allowed: \\set, \\sleep, \\if, \\elif, \\else, \\endif, \\gset, \\startpipeline, \\endpipeline";
    for name in ["setshell", "shell", "aset", "syncpipeline"] {
        let text = format!("SELECT 1;\n\\{name} x \\\n y\nSELECT 2;");
        assert_eq!(refusal(&text), format!("script a.sql, line 2: \\{name} is not supported; {allowed}"));
    }
    let text = "\\frob\n\\set x floor(1)\n\\sleep 1 h\nSELECT ':x';\n\\endif";
    let problems = refusal(text);
    let lines: Vec<&str> = problems.lines().collect();
    assert_eq!(lines[0], format!("script a.sql, line 1: \\frob is not a command; {allowed}"));
    assert!(lines[1].starts_with("script a.sql, line 2: unknown function floor; allowed: abs, debug, "));
    assert_eq!(lines[2], "script a.sql, line 3: \\sleep: unknown unit h; allowed: us, ms, s");
    assert!(lines[3].starts_with("script a.sql, line 4: :x stands in quotes or a comment"));
    assert_eq!(lines[4], "script a.sql, line 5: \\endif without \\if");
}

#[test]
fn malformed_scripts_are_refused() {
    let cases = [
        ("", "holds no command"),
        ("-- nothing\n;", "holds no command"),
        ("\\set", "\\set lacks a variable"),
        ("\\set 1x 2", "1x is not a variable's name"),
        ("\\set x", "the expression ends too early"),
        ("\\sleep", "\\sleep lacks a time"),
        ("\\sleep x", "must be an integer or a variable"),
        ("\\sleep 1 ms 2", "takes a time and a unit"),
        ("\\gset", "\\gset must follow an SQL command"),
        ("SELECT 1 \\gset\n\\gset", "\\gset must follow an SQL command"),
        ("SELECT 1 \\gset a b", "\\gset takes one argument"),
        ("SELECT 'a", "line 1: a quoted string without an end"),
        ("\\if true\nSELECT 1;", "line 1: \\if without \\endif"),
        ("SELECT 1;\n\\else", "line 2: \\else without \\if"),
        ("\\if 1\n\\else\n\\elif 1\n\\endif", "line 3: \\elif after \\else"),
        ("\\if 1\n\\else\n\\else\n\\endif", "line 3: \\else after \\else"),
        ("\\if 1\n\\endif x", "line 2: \\endif takes no argument"),
        ("\\startpipeline x\nSELECT 1;\n\\endpipeline", "line 1: \\startpipeline takes no argument"),
        ("\\startpipeline\nSELECT 1;\n\\startpipeline", "line 3: \\startpipeline: already in pipeline mode"),
        ("SELECT 1;\n\\endpipeline", "line 2: \\endpipeline: not in pipeline mode"),
        ("\\startpipeline\nSELECT 1 \\gset\n\\endpipeline", "line 2: \\gset is not allowed in pipeline mode"),
        ("SELECT 1;\n\\startpipeline\nSELECT 1;", "line 2: end of script reached with pipeline open"),
    ];
    for (text, wanted) in cases {
        let problems = refusal(text);
        assert!(problems.contains(wanted), "{text}: {problems}");
    }
    let mut wrong = parameters(&[("a", "SELECT 1;"), ("a", "SELECT 2;"), ("b@0", "SELECT 3;")], 1, 0);
    wrong.variables.insert("a b".to_owned(), Definition::Boolean(true));
    let problems = Scripts::new(&wrong, Mode::Simple).unwrap_err();
    for wanted in ["two scripts have this name", "a b is not a name", "workload.client_count"] {
        assert!(problems.contains(wanted), "{problems}");
    }
}

#[test]
fn pipelines_need_another_mode_than_simple() {
    let texts = [("a.sql", "\\startpipeline\nSELECT 1;\n\\endpipeline")];
    assert!(Scripts::new(&parameters(&texts, 1, 1), Mode::Extended).is_ok());
    let refused = Scripts::new(&parameters(&texts, 1, 1), Mode::Simple).unwrap_err();
    let wanted =
        "script a.sql, line 1: \\startpipeline: cannot use pipeline mode with the simple query protocol; allowed: ";
    assert!(refused.starts_with(wanted) && refused.contains("workload.mode"), "{refused}");
    // Where a condition decides it is known only when the script runs.
    let depends = [("a.sql", "\\if :x\n\\startpipeline\n\\endif\nSELECT 1;\n\\endpipeline")];
    assert!(Scripts::new(&parameters(&depends, 1, 1), Mode::Prepared).is_ok());
}

/// Whatever a file holds, it is read or refused.
#[test]
fn damaged_scripts_end_nothing() {
    const WHOLE: &str = concat!(
        include_str!("../../../../tests/scripts/gset_chain.sql"),
        include_str!("../../../../tests/scripts/case_arithmetic.sql"),
        include_str!("../../../../tests/scripts/jsonb_update.sql"),
        include_str!("../../../../tests/scripts/think_time.sql"),
    );
    const BITS: [&str; 18] = [
        "\\startpipeline\n",
        "\\endpipeline\n",
        "\\",
        "\\\n",
        "\\;",
        "'",
        "$$",
        "\"",
        "/*",
        "é",
        "(",
        ":",
        "::",
        ";",
        "\0",
        "\\if 1\n",
        "\\gset\n",
        "-9223372036854775808",
    ];
    let mut draws = Generator::new(3);
    for _ in 0..2000 {
        let mut text = WHOLE.to_owned();
        for _ in 0..=draws.up_to(3) {
            let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
            let mut place = || places[draws.up_to(places.len() as u64 - 1) as usize];
            let (one, other) = (place(), place());
            let bit = BITS[draws.up_to(17) as usize];
            let (from, to) = (one.min(other), one.max(other));
            // Mostly small damage.
            let to = places.iter().copied().find(|&place| place >= to.min(from + 20)).unwrap_or(to);
            text.replace_range(from..to.max(from), bit);
        }
        for mode in [Mode::Simple, Mode::Prepared] {
            let _ = Scripts::new(&parameters(&[("damaged", &text)], 1, 1), mode);
        }
    }
}
