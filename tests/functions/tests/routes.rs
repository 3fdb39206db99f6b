//! The route table, the routers of the functions, the registry of settings and
//! the files that deploy them say the same. `make routes` (`UPDATE_ROUTES=1`) writes the
//! files.

use std::collections::BTreeSet;

use callboard_platform::config::registry;
use callboard_test_functions::served::{FUNCTIONS, Served, WITHOUT_ROUTES, infra};
use callboard_test_functions::settings::{self, NOT_IN_FUNCTIONS, SET_BY_TEMPLATE};

#[test]
fn every_function_of_the_workspace_is_deployed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../functions");
    let folders: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let deployed = FUNCTIONS.iter().map(|(name, _)| *name).chain(WITHOUT_ROUTES).map(str::to_owned).collect();
    assert_eq!(folders, deployed);
    let template = std::fs::read_to_string(infra("template.yaml")).unwrap();
    for name in &deployed {
        let code = format!("CodeUri: ../target/functions/{name}/\n");
        assert_eq!(template.matches(&code).count(), 1, "the template deploys {name}");
    }
}

#[tokio::test]
async fn the_deployed_routes_are_those_of_the_route_table() {
    let served = Served::by_functions().await.unwrap();
    let template = std::fs::read_to_string(infra("template.yaml")).unwrap();
    let expected = [
        ("routes.json", served.routes_json().unwrap()),
        ("template.yaml", settings::template(&served.template(&template).unwrap()).unwrap()),
    ];
    for (file, expected) in expected {
        if std::env::var_os("UPDATE_ROUTES").is_some() {
            std::fs::write(infra(file), &expected).unwrap();
        }
        let found = std::fs::read_to_string(infra(file)).unwrap_or_default();
        let advice = "is not what the route table and the settings say; `make routes` writes it";
        assert!(found == expected, "infra/{file} {advice}");
    }
}

#[test]
fn functions_can_be_given_every_setting_that_makes_sense_there() {
    let template = std::fs::read_to_string(infra("template.yaml")).unwrap();
    let given = |name: &str| {
        template.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with(&format!("{name}: ")) || line.contains(&format!("{{ {name}: "))
        })
    };
    for variable in registry::variables() {
        let makes_none = NOT_IN_FUNCTIONS.iter().any(|(name, _)| *name == variable.name);
        assert_eq!(given(variable.name), !makes_none, "{} in infra/template.yaml", variable.name);
        // What is by itself no secret must not hide what is.
        if variable.kind.is_secret() && !SET_BY_TEMPLATE.contains(&variable.name) {
            let parameter = template.split(&format!("{}: !If [Has", variable.name)).nth(1).unwrap();
            let parameter = parameter.split(',').next().unwrap();
            let described = template.split(&format!("\n  {parameter}:\n")).nth(1).unwrap();
            assert!(described.split("\n  ").take(5).any(|line| line.contains("NoEcho: true")), "{parameter}");
        }
    }
}
