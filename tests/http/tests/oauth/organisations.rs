//! Allowlists of organisations read every page of the list.

use super::*;

async fn arrives(world: &World) -> String {
    world.sign_in(&mut Browser::default(), "codehost", "").await
}

#[tokio::test]
async fn a_membership_on_a_later_short_page_counts() {
    on_both(&[("SERVICE_OAUTH_CODEHOST_ALLOWED_ORGS", "acme")], async |world| {
        world.account("root", None).await;
        world.provider.set_profile(json!({ "id": 12, "login": "ada" }));
        let names = |count: usize, last: &str| {
            (0..count).map(|n| format!("org-{n}")).chain([last.to_owned()]).collect::<Vec<_>>()
        };
        world.provider.set_page_size(30);
        world.provider.set_organisations(names(95, "Acme"));
        assert_eq!(arrives(world).await, "/");
        assert_eq!(world.provider.organisation_requests(), 4);

        world.provider.set_organisations(names(95, "stranger"));
        assert_eq!(arrives(world).await, "/login?error=org-not-allowed");

        // A list without end is not read for ever.
        world.provider.set_page_size(1);
        world.provider.set_organisations(names(500, "Acme"));
        let before = world.provider.organisation_requests();
        assert_eq!(arrives(world).await, "/login?error=org-not-allowed");
        assert_eq!(world.provider.organisation_requests() - before, 20);
    })
    .await;
}

#[tokio::test]
async fn the_next_page_is_not_asked_of_another_host() {
    on_both(&[("SERVICE_OAUTH_CODEHOST_ALLOWED_ORGS", "acme")], async |world| {
        world.account("root", None).await;
        world.provider.set_profile(json!({ "id": 12, "login": "ada" }));
        world.provider.set_organisations(["stranger".to_owned()]);
        let elsewhere = Provider::start().await.expect("another provider");
        elsewhere.set_organisations(["acme".to_owned()]);
        let settings = elsewhere.settings();
        let user = settings.iter().find(|(name, _)| name == "SERVICE_OAUTH_CODEHOST_USERINFO_URL");
        world.provider.set_next_page(user.map(|(_, address)| format!("{address}/orgs")));
        assert_eq!(arrives(world).await, "/login?error=org-not-allowed");
        assert_eq!(elsewhere.organisation_requests(), 0, "the token stays with its provider");
    })
    .await;
}
