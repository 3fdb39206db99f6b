//! How a message looks in each chat. Names of tests and texts of errors are
//! never markup there: they cannot mention people, add links or break a card.

pub(crate) mod discord;
pub(crate) mod slack;
pub(crate) mod teams;

#[cfg(test)]
pub(crate) fn hostile() -> callboard_domain::notifications::Message {
    callboard_domain::notifications::Message {
        headline: "shop: run 55 on main failed <!channel> @everyone".to_owned(),
        facts: vec![
            "3 failed, 116 passed".to_owned(),
            "• [click](https://evil.example) *bold* <https://evil.example|here> <@U123> `code`".to_owned(),
        ],
        failures: vec![
            callboard_domain::notifications::FailureLine {
                title: "pays](https://evil.example) <!here> @everyone".to_owned(),
                cause: Some("Expected <b>1</b> [x](https://evil.example)".to_owned()),
                owner: Some("@team".to_owned()),
                same_cause: 2,
                url: "https://callboard.example.com/test-runs-cases/7".to_owned(),
            },
            callboard_domain::notifications::FailureLine {
                title: "ships".to_owned(),
                url: "https://callboard.example.com/test-runs-cases/8".to_owned(),
                ..callboard_domain::notifications::FailureLine::default()
            },
        ],
        more_failures: 4,
        url: "https://callboard.example.com/test-runs/55".to_owned(),
        project_id: Some(1),
        project_name: Some("shop".to_owned()),
        run_id: Some(55),
        status: Some("failed".to_owned()),
        branch: Some("main".to_owned()),
        ..callboard_domain::notifications::Message::default()
    }
}
