//! The route table, the routers of the functions and the files that deploy
//! them say the same. `make routes` (`UPDATE_ROUTES=1`) writes the files.

use std::collections::BTreeSet;

use callboard_test_functions::served::{FUNCTIONS, Served, infra};

#[test]
fn every_function_of_the_workspace_is_deployed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../functions");
    let folders: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders, FUNCTIONS.iter().map(|(name, _)| (*name).to_owned()).collect());
}

#[tokio::test]
async fn the_deployed_routes_are_those_of_the_route_table() {
    let served = Served::by_functions().await.unwrap();
    let template = std::fs::read_to_string(infra("template.yaml")).unwrap();
    let expected = [
        ("routes.json", served.routes_json().unwrap()),
        ("template.yaml", served.template(&template).unwrap()),
    ];
    for (file, expected) in expected {
        if std::env::var_os("UPDATE_ROUTES").is_some() {
            std::fs::write(infra(file), &expected).unwrap();
        }
        let found = std::fs::read_to_string(infra(file)).unwrap_or_default();
        assert!(found == expected, "infra/{file} is not what the route table says; `make routes` writes it");
    }
}
