//! `/health` and `/ready`.

use crate::scene;

#[test]
fn health_and_ready_need_no_key() {
    let (mut server, account, _) = scene::bucket();
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        for path in ["/health", "/ready"] {
            let answer = server.client.get(path).send();
            assert_eq!(answer.status, 200, "contract 9: {path}: no key: {answer}");
            let with_key = server.client.get(path).key("svc_a_wrong").send();
            assert_eq!(
                with_key.status, 200,
                "contract 9: {path} does not look at keys: {with_key}"
            );
        }
    }
    let answer = server.client.get("/health").key(&account.admin).send();
    assert!(
        answer.header("x-ratelimit-limit").is_none(),
        "contract 10: an unlimited plan has no rate headers: {answer}"
    );
}
